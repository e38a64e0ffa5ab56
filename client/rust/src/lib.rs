//! A thin blocking client for memd, the daemon that keeps the memory of agents.
//!
//! A [`Client`] connects when it is first used, starts the daemon if nobody listens, and connects again when it must. It may be
//! shared between threads; their calls go one after the other. Every method of the protocol is a method here, with typed
//! parameters, results and errors; `../PROTOCOL.md` says what they mean.

mod autostart;
mod certify;
mod client;
mod error;
mod events;
#[rustfmt::skip] // written by a program, which has its own way
mod generated;
mod places;
mod scrub;
mod wire;

pub use certify::certify;
pub use client::{Client, Nothing, Options, Params, VERSION};
pub use error::Error;
pub use events::Events;
pub use generated::*;
pub use places::{agent_sockets, operator_sockets, Env};
pub use rmpv::Value;
pub use scrub::{fenced, Scrubber};
#[doc(hidden)]
pub use wire::{Incoming, Message};

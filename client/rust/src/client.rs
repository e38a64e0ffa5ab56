//! The client: calls that survive a restart of the daemon.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rmpv::Value;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::autostart;
use crate::error::{Error, CONNECTION_LOST, NOT_RUNNING, TIMEOUT, UNTRUSTED};
use crate::errors::{BUSY, NO_SUCH_SESSION, SHUTTING_DOWN, TOO_MANY_REQUESTS};
use crate::events::Events;
use crate::generated::{ClientInfo, HelloParams, HelloResult, RpcPingParams, PROTOCOL_VERSION};
use crate::places::{agent_sockets, set, Env};
use crate::wire::Wire;

/// This client's.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

const PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// What the daemon's own answer about a deadline gets to arrive: it says more than our giving up.
const MARGIN: Duration = Duration::from_millis(250);

/// The parameters of a method, and with them what the method is.
pub trait Params: Serialize {
    const METHOD: &'static str;
    /// Whether it may be called again after a lost reply; of a mutation: with its `request_id`.
    const REPEATABLE: bool;
    type Result: DeserializeOwned;

    fn deadline_ms(&mut self) -> &mut Option<i64>;
    /// Only mutations have one.
    fn request_id(&mut self) -> Option<&mut Option<String>>;
}

/// The result of a method that has nothing to say beyond that it is done.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
pub struct Nothing {}

/// Where memd is and who calls. The default is a client for the user's own daemon.
#[derive(Clone)]
pub struct Options {
    /// Path of the socket; None looks at the places of the protocol.
    pub socket: Option<PathBuf>,
    /// Needed only where several are configured.
    pub profile: Option<String>,
    /// Recorded with every change.
    pub name: String,
    /// `primary` (default), `subagent`, `cron` or `job`.
    pub context: Option<String>,
    /// Less than the context has: `none`, `read` or `add`.
    pub access: Option<String>,
    /// What a call may take, reconnecting and repeating included.
    pub timeout: Duration,
    /// False leaves a daemon that is not running alone, as `MEMD_AUTOSTART=0` does.
    pub autostart: bool,
    pub env: Env,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            socket: None,
            profile: None,
            name: "memd-rust".into(),
            context: None,
            access: None,
            timeout: Duration::from_secs(10),
            autostart: true,
            env: Arc::new(|name| std::env::var(name).ok()),
        }
    }
}

/// A blocking client. It connects when first used, and again when it must.
pub struct Client {
    options: Options,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    wire: Option<Wire>,
    hello: HelloResult,
    /// Whether there has been a connection: a daemon that is gone is then probably coming back.
    met: bool,
}

impl Client {
    pub fn new(options: Options) -> Self {
        Client { options, state: Mutex::default() }
    }

    /// What the handshake settled; connects if that has not been done.
    pub fn hello(&self) -> Result<HelloResult, Error> {
        self.call(RpcPingParams::default())?; // over a restart too
        Ok(self.state().hello.clone())
    }

    /// Call a method, over lost connections and restarts of the daemon. Mutations get a `request_id`, with which they are done once
    /// however often they are sent.
    pub fn call<P: Params>(&self, mut params: P) -> Result<P::Result, Error> {
        let until = Instant::now() + self.options.timeout;
        let chosen = params.deadline_ms().is_some();
        let request_id = params.request_id().map(|id| id.get_or_insert_with(|| uuid::Uuid::new_v4().to_string()).clone());
        let mut doubt = false; // whether the daemon may have carried out an earlier attempt
        let mut pause = PAUSE;
        loop {
            if !chosen {
                *params.deadline_ms() = Some(deadline_ms(until));
            }
            let bytes = rmp_serde::to_vec_named(&params).map_err(|error| invalid(&error))?;
            let problem = match self.attempt(P::METHOD, &bytes, until) {
                Ok(value) => return read(value),
                Err(problem) => problem,
            };
            if doubt && P::METHOD == "session.close" && problem.is(NO_SUCH_SESSION) {
                return read(Value::Map(Vec::new())); // closed by the attempt whose reply was lost
            }
            doubt |= problem.sent;
            if !self.again(&problem, P::REPEATABLE) || Instant::now() + pause >= until {
                return Err(last_word(problem, request_id, doubt));
            }
            sleep(pause);
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }

    /// Call any method, also one this client does not know, with a map of parameters. It is not repeated.
    pub fn call_any(&self, method: &str, params: &Value) -> Result<Value, Error> {
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, params).map_err(|error| invalid(&error))?;
        self.attempt(method, &bytes, Instant::now() + self.options.timeout)
    }

    /// Events as they happen, over a connection of their own; no topics means all. With `since`, those after it come first.
    pub fn events(&self, topics: &[&str], since: Option<i64>) -> Result<Events<'_>, Error> {
        Events::subscribe(self, topics, since, Instant::now() + self.options.timeout)
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.options.timeout
    }

    /// A new connection that has said hello.
    pub(crate) fn open(&self, until: Instant, may_start: bool) -> Result<(Wire, HelloResult), Error> {
        let mut wire = self.reach(until, may_start)?;
        let options = &self.options;
        let hello = HelloParams {
            client: Some(ClientInfo { name: options.name.clone(), version: VERSION.into() }),
            protocol: Some(vec![PROTOCOL_VERSION, PROTOCOL_VERSION]),
            profile: options.profile.clone(),
            context: options.context.clone(),
            access: options.access.clone(),
            ..HelloParams::default()
        };
        let bytes = rmp_serde::to_vec_named(&hello).map_err(|error| invalid(&error))?;
        let answered = wire.call(HelloParams::METHOD, &bytes, until).map_err(|mut problem| {
            problem.sent &= !problem.is(CONNECTION_LOST); // nothing but hello was
            problem
        });
        let answered = read(answered?)?;
        Ok((wire, answered))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner) // a connection holds no half-done thing
    }

    fn attempt(&self, method: &str, params: &[u8], until: Instant) -> Result<Value, Error> {
        let mut state = self.state();
        self.connected(&mut state, until)?.call(method, params, until)
    }

    fn connected<'a>(&self, state: &'a mut State, until: Instant) -> Result<&'a mut Wire, Error> {
        if !state.wire.as_mut().is_some_and(Wire::usable) {
            state.wire = None;
            let (wire, hello) = self.open(until, true)?;
            *state = State { wire: Some(wire), hello, met: true };
        }
        Ok(state.wire.as_mut().expect("just connected"))
    }

    fn again(&self, problem: &Error, repeatable: bool) -> bool {
        let mut state = self.state();
        match problem.name.as_str() {
            NOT_RUNNING => state.met,
            CONNECTION_LOST => repeatable || !problem.sent,
            SHUTTING_DOWN | BUSY | TOO_MANY_REQUESTS => {
                if problem.is(SHUTTING_DOWN) {
                    state.wire = None;
                }
                repeatable || problem.outcome.as_deref() != Some("unknown")
            }
            _ => false,
        }
    }

    fn reach(&self, until: Instant, may_start: bool) -> Result<Wire, Error> {
        let Options { env, socket, autostart, .. } = &self.options;
        let mut first = None;
        for path in agent_sockets(env, socket.as_deref()) {
            match Wire::dial(&path) {
                Err(problem) if problem.is(NOT_RUNNING) => first = first.or(Some(problem)),
                found => return found,
            }
        }
        if !may_start || !autostart || set(env, "MEMD_AUTOSTART").as_deref() == Some("0") {
            return Err(first.expect("there is at least one place"));
        }
        Wire::dial(&autostart::start(env, socket.as_deref(), until)?)
    }
}

/// The error, made to say what is known of a mutation over all attempts, and with what to ask again. A reply about the mutation itself
/// is the last word.
fn last_word(mut problem: Error, request_id: Option<String>, doubt: bool) -> Error {
    let passing = [SHUTTING_DOWN, BUSY, TOO_MANY_REQUESTS, NOT_RUNNING, CONNECTION_LOST, TIMEOUT, UNTRUSTED];
    if request_id.is_some() && passing.contains(&problem.name.as_str()) {
        let unknown = doubt || problem.outcome.as_deref() == Some("unknown");
        problem.outcome = Some(if unknown { "unknown" } else { "none" }.into());
        problem.request_id = request_id;
    }
    problem
}

/// What is left of the call's time, less what the answer needs to arrive.
fn deadline_ms(until: Instant) -> i64 {
    let left = until.saturating_duration_since(Instant::now());
    let ms = (left - MARGIN.min(left / 10)).as_millis();
    i64::try_from(ms).unwrap_or(i64::MAX).max(1)
}

pub(crate) fn read<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    rmpv::ext::from_value(value).map_err(|error| Error::trouble("invalid_reply", true, error.to_string()))
}

fn invalid(error: &dyn std::error::Error) -> Error {
    Error::trouble("invalid_params", false, error.to_string())
}

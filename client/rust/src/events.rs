//! Events as they happen, over restarts of the daemon.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::client::{read, Client, Params};
use crate::error::{Error, CONNECTION_LOST, NOT_RUNNING};
use crate::errors::SHUTTING_DOWN;
use crate::generated::{topics, Event, EventsSubscribeParams, Subscribed};
use crate::wire::Wire;

const PAUSE: Duration = Duration::from_millis(100);

/// A stream of events; after a restart of the daemon it goes on where it was. An event with the topic `events.lost` says that some could
/// not be kept: read the stores again.
pub struct Events<'a> {
    client: &'a Client,
    topics: Vec<String>,
    since: Option<i64>,
    gap: Option<Event>,
    wire: Wire,
}

impl<'a> Events<'a> {
    pub(crate) fn subscribe(client: &'a Client, topics: &[&str], since: Option<i64>, until: Instant) -> Result<Self, Error> {
        let topics: Vec<String> = topics.iter().map(ToString::to_string).collect();
        let (wire, gap, since) = subscribed(client, &topics, since, until, true)?;
        Ok(Events { client, topics, since, gap, wire })
    }

    /// The next event; None if there is none within `wait`.
    pub fn next(&mut self, wait: Duration) -> Result<Option<Event>, Error> {
        let until = Instant::now() + wait;
        loop {
            if let Some(gap) = self.gap.take() {
                return Ok(Some(gap));
            }
            let (method, mut params) = match self.wire.next_note(until) {
                Ok(Some(note)) => note,
                Ok(None) => return Ok(None),
                Err(problem) if problem.is(CONNECTION_LOST) => {
                    self.resubscribe()?;
                    continue;
                }
                Err(problem) => return Err(problem),
            };
            if method != "event" || params.is_empty() {
                continue;
            }
            let event: Event = read(params.swap_remove(0))?;
            if event.topic == topics::EVENTS_LOST || self.since.is_none_or(|since| event.seq > since) {
                self.since = self.since.max(Some(event.seq));
                return Ok(Some(event));
            } // else replayed and live at once
        }
    }

    fn resubscribe(&mut self) -> Result<(), Error> {
        let until = Instant::now() + self.client.timeout();
        loop {
            match subscribed(self.client, &self.topics, self.since, until, false) {
                Ok((wire, gap, since)) => {
                    (self.wire, self.gap, self.since) = (wire, gap, since);
                    return Ok(());
                }
                Err(problem) => {
                    let gone = [NOT_RUNNING, CONNECTION_LOST, SHUTTING_DOWN].contains(&problem.name.as_str());
                    if !gone || Instant::now() >= until {
                        return Err(problem);
                    }
                }
            }
            sleep(PAUSE);
        }
    }
}

type Subscription = (Wire, Option<Event>, Option<i64>);

fn subscribed(
    client: &Client,
    wanted: &[String],
    since: Option<i64>,
    until: Instant,
    may_start: bool,
) -> Result<Subscription, Error> {
    let (mut wire, hello) = client.open(until, may_start)?;
    let params = EventsSubscribeParams { topics: Some(wanted.to_vec()), since_seq: since, ..Default::default() };
    let bytes = rmp_serde::to_vec_named(&params).map_err(|error| Error::trouble("invalid_params", false, error.to_string()))?;
    let reply: Subscribed = read(wire.call(EventsSubscribeParams::METHOD, &bytes, until)?)?;
    let lost = || Event { seq: reply.seq, topic: topics::EVENTS_LOST.into(), profile: hello.profile.clone(), ..Event::default() };
    Ok((wire, reply.lost.then(lost), since.or(Some(reply.seq))))
}

//! One connection: MessagePack-RPC over a Unix socket. No reconnecting, repeating or starting here.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rmpv::decode::Error as DecodeError;
use rmpv::Value;

use crate::error::{Error, CONNECTION_LOST, NOT_RUNNING, TIMEOUT, UNTRUSTED};

const CHUNK: usize = 64 << 10;
/// A socket's timeout of nothing would mean to wait for ever.
const SHORTEST: Duration = Duration::from_millis(1);

/// A message of the daemon.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    Reply {
        msgid: u32,
        result: Result<Value, Error>,
    },
    Notification {
        method: String,
        params: Vec<Value>,
    },
    /// Of no kind that this client knows.
    Other,
}

/// Bytes in, messages out; the bytes may be cut anywhere.
#[derive(Default)]
pub struct Incoming {
    bytes: Vec<u8>,
    tried: usize,
}

impl Incoming {
    /// Take bytes; `more` if others are known to follow, so that a large message is not read again for each piece of it.
    pub fn feed(&mut self, bytes: &[u8], more: bool) -> Result<Vec<Message>, String> {
        self.bytes.extend_from_slice(bytes);
        if more && self.bytes.len() < 2 * self.tried {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        let mut rest = &self.bytes[..];
        while !rest.is_empty() {
            let mut ahead = rest;
            match rmpv::decode::read_value(&mut ahead) {
                Ok(Value::Array(parts)) => found.push(message(parts)),
                Ok(other) => return Err(format!("no message: {other}")),
                Err(DecodeError::InvalidMarkerRead(error) | DecodeError::InvalidDataRead(error))
                    if error.kind() == ErrorKind::UnexpectedEof =>
                {
                    break
                }
                Err(error) => return Err(error.to_string()),
            }
            rest = ahead;
        }
        let used = self.bytes.len() - rest.len();
        self.bytes.drain(..used);
        self.tried = self.bytes.len();
        Ok(found)
    }
}

fn message(parts: Vec<Value>) -> Message {
    match (parts.first().and_then(Value::as_u64), parts.len()) {
        (Some(1), 4) => {
            let [_, msgid, error, result]: [Value; 4] = parts.try_into().expect("four parts");
            let Some(msgid) = msgid.as_u64().and_then(|id| u32::try_from(id).ok()) else {
                return Message::Other;
            };
            let result = if error.is_nil() { Ok(result) } else { Err(Error::from_wire(&error)) };
            Message::Reply { msgid, result }
        }
        (Some(2), 3) => {
            let [_, method, params]: [Value; 3] = parts.try_into().expect("three parts");
            let (Value::String(method), Value::Array(params)) = (method, params) else {
                return Message::Other;
            };
            Message::Notification { method: method.into_str().unwrap_or_default(), params }
        }
        _ => Message::Other,
    }
}

/// A message of ours, as bytes.
pub(crate) fn packed(kind: u8, msgid: Option<u32>, method: &str, params: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(params.len() + method.len() + 16);
    let length = if msgid.is_some() { 4 } else { 3 };
    rmpv::encode::write_value(&mut bytes, &Value::from(kind)).expect("memory");
    bytes.insert(0, 0x90 | length);
    for value in msgid.map(Value::from).into_iter().chain([Value::from(method)]) {
        rmpv::encode::write_value(&mut bytes, &value).expect("memory");
    }
    bytes.push(0x91); // an array of one
    bytes.extend_from_slice(params);
    bytes
}

/// One connection. After it is lost it stays lost.
pub(crate) struct Wire {
    path: PathBuf,
    socket: UnixStream,
    incoming: Incoming,
    arrived: VecDeque<Message>,
    pub notes: VecDeque<(String, Vec<Value>)>,
    pub lost: bool,
    last: u32,
}

impl Wire {
    /// Connect, and look whose process it is before anything is said.
    pub fn dial(path: &Path) -> Result<Wire, Error> {
        let absent = |error: std::io::Error| {
            Error::trouble(NOT_RUNNING, false, format!("no memd listens at {} ({error})", path.display()))
        };
        let socket = UnixStream::connect(path).map_err(absent)?;
        let peer = rustix::net::sockopt::socket_peercred(&socket).map_err(|error| absent(error.into()))?;
        let us = rustix::process::geteuid();
        if peer.uid != us {
            let (theirs, ours) = (peer.uid.as_raw(), us.as_raw());
            let message = format!("{} belongs to uid {theirs}, not to you ({ours}); nothing was sent", path.display());
            return Err(Error::trouble(UNTRUSTED, false, message));
        }
        Ok(Wire {
            path: path.into(),
            socket,
            incoming: Incoming::default(),
            arrived: VecDeque::new(),
            notes: VecDeque::new(),
            lost: false,
            last: 0,
        })
    }

    /// Send a request and wait for its reply.
    pub fn call(&mut self, method: &str, params: &[u8], until: Instant) -> Result<Value, Error> {
        self.last = self.last.wrapping_add(1);
        let msgid = self.last;
        self.send(&packed(0, Some(msgid), method, params), until)?;
        loop {
            match self.receive(until)? {
                Some(Message::Reply { msgid: id, result }) if id == msgid => return result,
                Some(Message::Notification { method, params }) => self.note(method, params)?,
                Some(_) => {}
                None => {
                    let cancel = rmp_serde::to_vec_named(&std::collections::BTreeMap::from([("msgid", msgid)])).expect("memory");
                    let moment = Instant::now() + Duration::from_millis(100);
                    let _ = self.send(&packed(2, None, "rpc.cancel", &cancel), moment); // nobody waits any more
                    return Err(Error::trouble(TIMEOUT, true, format!("no reply to {method} in time")));
                }
            }
        }
    }

    /// The oldest notification that nobody has asked for yet; None if there is none until then.
    pub fn next_note(&mut self, until: Instant) -> Result<Option<(String, Vec<Value>)>, Error> {
        while self.notes.is_empty() {
            match self.receive(until)? {
                Some(Message::Notification { method, params }) => self.note(method, params)?,
                Some(_) => {}
                None => return Ok(None),
            }
        }
        Ok(self.notes.pop_front())
    }

    /// Look, without waiting, whether the daemon has closed an idle connection: what is sent then is lost.
    pub fn usable(&mut self) -> bool {
        if self.lost || self.socket.set_nonblocking(true).is_err() {
            return false;
        }
        let read = self.read_some();
        self.lost |= self.socket.set_nonblocking(false).is_err();
        match read {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.lost = true,
        }
        !self.lost
    }

    fn note(&mut self, method: String, params: Vec<Value>) -> Result<(), Error> {
        if method == "rpc.protocol_error" {
            let problem = params.first().map(Error::from_wire);
            if let Some(problem) = problem.filter(|problem| problem.is(crate::errors::TOO_MANY_REQUESTS)) {
                self.lost = true; // refused as a whole: nothing was taken
                return Err(problem);
            }
        } else {
            self.notes.push_back((method, params));
        }
        Ok(())
    }

    fn send(&mut self, bytes: &[u8], until: Instant) -> Result<(), Error> {
        let left = until.saturating_duration_since(Instant::now()).max(SHORTEST);
        let sent = self.socket.set_write_timeout(Some(left)).and_then(|()| self.socket.write_all(bytes));
        sent.map_err(|error| self.lose(&error)) // a message that was cut is never carried out
    }

    /// The next message; None if there is none until then.
    fn receive(&mut self, until: Instant) -> Result<Option<Message>, Error> {
        loop {
            if let Some(message) = self.arrived.pop_front() {
                return Ok(Some(message));
            }
            let left = until.saturating_duration_since(Instant::now());
            let read = self.socket.set_read_timeout(Some(left.max(SHORTEST))).and_then(|()| self.read_some());
            match read {
                Ok(()) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if Instant::now() >= until {
                        return Ok(None);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.lose(&error)),
            }
        }
    }

    fn read_some(&mut self) -> std::io::Result<()> {
        let mut chunk = [0; CHUNK];
        let length = self.socket.read(&mut chunk)?;
        if length == 0 {
            return Err(std::io::Error::new(ErrorKind::UnexpectedEof, "memd closed the connection"));
        }
        let found = self.incoming.feed(&chunk[..length], length == CHUNK);
        self.arrived.extend(found.map_err(std::io::Error::other)?);
        Ok(())
    }

    fn lose(&mut self, error: &std::io::Error) -> Error {
        self.lost = true;
        Error::trouble(CONNECTION_LOST, true, format!("{}: {error}", self.path.display()))
    }
}

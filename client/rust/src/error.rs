//! Errors: those of the protocol, and the four of the connection.

use std::fmt;

use rmpv::Value;

pub const NOT_RUNNING: &str = "not_running";
pub const UNTRUSTED: &str = "untrusted";
pub const CONNECTION_LOST: &str = "connection_lost";
pub const TIMEOUT: &str = "timeout";

/// An error of the protocol by its stable `name` (see [`crate::errors`]), or `not_running`, `untrusted`, `connection_lost`,
/// `timeout`.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    pub name: String,
    pub code: i64,
    pub message: String,
    pub retryable: bool,
    /// What is needed to act, a map.
    pub data: Value,
    /// Of a mutation: `none`, or `unknown` if something may have changed.
    pub outcome: Option<String>,
    /// Of a mutation that may be asked again: under which id.
    pub request_id: Option<String>,
    /// Whether the daemon may have seen the request.
    pub(crate) sent: bool,
}

impl Error {
    /// An error of the connection.
    pub(crate) fn trouble(name: &str, sent: bool, message: impl Into<String>) -> Self {
        Error {
            name: name.into(),
            code: 0,
            message: message.into(),
            retryable: !sent,
            data: Value::Map(Vec::new()),
            outcome: None,
            request_id: None,
            sent,
        }
    }

    /// The error of a reply, in the map form or the pair form.
    pub fn from_wire(value: &Value) -> Self {
        let mut found = Error::trouble("", false, "");
        found.retryable = false;
        if let Value::Array(pair) = value {
            found.code = pair.first().and_then(Value::as_i64).unwrap_or(0);
            found.message = pair.get(1).map(text).unwrap_or_default();
            return found;
        }
        found.name = text(&value["name"]);
        found.code = value["code"].as_i64().unwrap_or(0);
        found.message = text(&value["message"]);
        found.retryable = value["retryable"].as_bool().unwrap_or(false);
        found.data = value["data"].clone();
        found.outcome = found.data["outcome"].as_str().map(Into::into);
        found
    }

    /// Whether it has this name.
    pub fn is(&self, name: &str) -> bool {
        self.name == name
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().into()
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.name, self.message)
    }
}

impl std::error::Error for Error {}

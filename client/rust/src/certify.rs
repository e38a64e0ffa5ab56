//! The certification of this client against a running daemon.

use rmpv::Value;

use crate::client::Client;
use crate::error::Error;
use crate::errors::CONFLICT;

/// Go through the sequence: each reply is the next call's argument. An error says which value did not survive.
pub fn certify(client: &Client) -> Result<(), Error> {
    let mut given = client.call_any("rpc.certify.start", &Value::Map(Vec::new()))?;
    for step in ["flag", "ints", "texts", "lists", "maps", "error", "end"] {
        given = match client.call_any(&format!("rpc.certify.{step}"), &given) {
            Err(problem) if step == "error" && problem.is(CONFLICT) => {
                Value::Map(vec![("id".into(), problem.data["id"].clone()), ("value".into(), problem.data["value"].clone())])
            }
            reply => reply?,
        };
    }
    match given["value"].as_str() {
        Some("certified") => Ok(()),
        other => Err(Error::trouble("invalid_reply", true, format!("not certified: {other:?}"))),
    }
}

//! The vectors, whole, byte by byte, and with more behind them.

use memd_client::{fenced, Fence, Incoming, Message, Scrubber};
use serde_json::Value as Json;

fn vectors(name: &str) -> Json {
    let path = format!("{}/../vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn texts(value: &Json) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect()
}

/// What comes of these bytes.
fn heard(hex: &Json) -> Vec<Message> {
    let data = hex::decode(hex.as_str().unwrap()).unwrap();
    let whole = Incoming::default().feed(&data, false).unwrap();
    let mut slowly = Incoming::default();
    let single: Vec<Message> = data.iter().flat_map(|byte| slowly.feed(&[*byte], false).unwrap()).collect();
    assert_eq!(whole, single);
    let twice = Incoming::default().feed(&[data.clone(), data].concat(), false).unwrap();
    assert_eq!([whole.clone(), whole.clone()].concat(), twice);
    whole
}

#[test]
fn messages_of_the_server() {
    let file = vectors("messages");
    let messages = file["messages"].as_array().unwrap().iter().filter(|one| one["from"] == "server");
    let mut seen = 0;
    for message in messages {
        seen += 1;
        let value = &message["value"];
        match (&heard(&message["hex"])[..], message["gives"].as_str().unwrap()) {
            ([Message::Reply { msgid, result: Ok(result) }], "reply") => {
                assert_eq!(value[1], *msgid);
                assert_eq!(value[3], serde_json::to_value(result).unwrap(), "{}", message["name"]);
            }
            ([Message::Reply { result: Err(_), .. }], "error") => {}
            ([Message::Notification { method, .. }], "notification") => assert_eq!(value[1], *method),
            other => panic!("{}: {other:?}", message["name"]),
        }
    }
    assert!(seen > 0);
}

#[test]
fn errors_of_the_protocol() {
    for expected in vectors("errors")["errors"].as_array().unwrap() {
        let found = heard(&expected["map"]["hex"]);
        let [Message::Reply { msgid: 5, result: Err(error) }] = &found[..] else { panic!("{found:?}") };
        assert_eq!(expected["name"], error.name);
        assert_eq!(expected["code"], error.code);
        assert_eq!(expected["retryable"], error.retryable);
        let found = heard(&expected["pair"]["hex"]);
        let [Message::Reply { result: Err(error), .. }] = &found[..] else { panic!("{found:?}") };
        assert!(error.message.starts_with(expected["name"].as_str().unwrap()));
    }
}

#[test]
fn what_is_not_messagepack_is_an_error() {
    assert!(Incoming::default().feed(&[0xc1], false).is_err());
}

#[test]
fn the_scrubber() {
    let file = vectors("scrubber");
    for one in file["scrubber"].as_array().unwrap() {
        let fence: Fence = serde_json::from_value(one["fence"].clone()).unwrap();
        let (name, out, chunks) = (&one["name"], one["out"].as_str().unwrap(), texts(&one["chunks"]));
        let mut scrubber = Scrubber::new(fence);
        let mut gives: Vec<String> = chunks.iter().map(|chunk| scrubber.feed(chunk)).collect();
        gives.push(scrubber.close());
        assert_eq!(texts(&one["gives"]), gives, "{name}");
        let whole = chunks.concat();
        let single: String = whole.chars().map(|letter| scrubber.feed(&letter.to_string())).collect();
        assert_eq!(out, single + &scrubber.close(), "{name}");
        for (at, _) in whole.char_indices() {
            let (before, after) = whole.split_at(at);
            let cut = scrubber.feed(before) + &scrubber.feed(after) + &scrubber.close();
            assert_eq!(out, cut, "{name} at {at}");
        }
    }
    for one in file["fenced"].as_array().unwrap() {
        let fence: Fence = serde_json::from_value(one["fence"].clone()).unwrap();
        assert_eq!(one["out"], fenced(one["text"].as_str().unwrap(), &fence), "{}", one["name"]);
    }
}

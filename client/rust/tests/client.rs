//! The client against real daemons.

mod home;

use std::time::Duration;

use home::Home;
use memd_client::*;

fn add(client: &Client, text: &str) -> Mutation {
    let params = MemoryAddParams { target: "memory".into(), content: text.into(), ..Default::default() };
    client.memory_add(params).unwrap()
}

fn texts(client: &Client) -> Vec<String> {
    let found = client.memory_read(MemoryReadParams::default()).unwrap();
    found.stores.memory.unwrap().entries.into_iter().map(|entry| entry.text).collect()
}

#[test]
fn certified() {
    certify(&Home::new().client()).unwrap();
}

#[test]
fn a_session_started_from_nothing() {
    let home = Home::new();
    let client = home.client();
    let opened = client.session_open(SessionOpenParams { key: Some("rust:1".into()), ..Default::default() }).unwrap();
    let session = opened.session;
    let added = MemoryAddParams {
        target: "user".into(),
        content: "Prefers Rust".into(),
        session: Some(session.clone()),
        ..Default::default()
    };
    assert_eq!("Prefers Rust", client.memory_add(added).unwrap().entry.unwrap().text);
    let shown = SessionSnapshotParams { session: session.clone(), ..Default::default() };
    let shown = client.session_snapshot(shown).unwrap();
    assert!(shown.stale && shown.changes_text.contains("Prefers Rust"));
    client.session_close(SessionCloseParams { session, ..Default::default() }).unwrap();
    assert!(client.memory_tool_schema(MemoryToolSchemaParams::default()).unwrap().contains_key("function"));
}

#[test]
fn errors_are_typed() {
    let home = Home::new();
    let client = home.client();
    let nowhere = MemoryRemoveParams { target: "memory".into(), old_text: Some("nowhere".into()), ..Default::default() };
    let problem = client.memory_remove(nowhere).unwrap_err();
    assert!(problem.is(errors::NOT_FOUND) && problem.code == 23);
    assert_eq!(Some("none"), problem.outcome.as_deref());
    let problem = client.call_any("memory.nothing", &Value::Map(Vec::new())).unwrap_err();
    assert!(problem.is(errors::METHOD_NOT_FOUND));
}

#[test]
fn nobody_is_there() {
    let home = Home::new();
    let client = Client::new(Options { autostart: false, ..home.options() });
    let problem = client.hello().unwrap_err();
    assert!(problem.is("not_running") && problem.message.contains("memd.sock"), "{problem}");
}

#[test]
fn a_deadline_holds_and_the_connection_stays() {
    let home = Home::new();
    add(&home.client(), "first");
    let client = Client::new(Options { timeout: Duration::from_secs(3), ..home.options() });
    let instance = client.hello().unwrap().server.instance;
    let wait = EventsWaitParams { timeout_ms: Some(600_000), ..Default::default() };
    assert!(client.events_wait(wait).unwrap_err().is("timeout"));
    assert_eq!(instance, client.hello().unwrap().server.instance);
}

#[test]
fn many_threads_at_once() {
    let home = Home::new();
    let client = home.client();
    std::thread::scope(|scope| {
        for number in 0..40 {
            let client = &client;
            scope.spawn(move || add(client, &format!("fact {number}")));
        }
    });
    assert_eq!(40, texts(&client).len());
}

#[test]
fn a_killed_daemon_loses_and_doubles_nothing() {
    let home = Home::new();
    let client = home.client();
    add(&client, "fact 0");
    std::thread::scope(|scope| {
        scope.spawn(|| (1..=30).for_each(|number| drop(add(&client, &format!("fact {number}")))));
        for _ in 0..3 {
            let pid = home.client().hello().unwrap().server.pid;
            let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    assert_eq!(31, texts(&client).len());
}

#[test]
fn events_go_on_after_a_restart() {
    let home = Home::new();
    let client = home.client();
    let mut stream = client.events(&[topics::MEMORY_CHANGED], None).unwrap();
    add(&client, "before");
    home.memd(&["stop"]);
    add(&client, "after");
    for _ in 0..2 {
        let event = stream.next(Duration::from_secs(20)).unwrap().unwrap();
        assert_eq!(topics::MEMORY_CHANGED, event.topic);
    }
}

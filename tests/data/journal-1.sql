-- The journal's schema, version 1, as the memd that wrote such journals had it.
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE store(id INTEGER PRIMARY KEY, directory TEXT NOT NULL, name TEXT NOT NULL, device INTEGER NOT NULL,
  inode INTEGER NOT NULL, checkpoint INTEGER NOT NULL DEFAULT 0, UNIQUE(directory, name));
CREATE TABLE revision(revision INTEGER PRIMARY KEY, store INTEGER NOT NULL, us INTEGER NOT NULL, kind TEXT NOT NULL,
  origin TEXT NOT NULL, client TEXT NOT NULL, uid INTEGER NOT NULL, pid INTEGER NOT NULL, session TEXT, turn TEXT,
  job TEXT, reason TEXT, changes BLOB NOT NULL, undoes BLOB NOT NULL, undone_by INTEGER);
CREATE INDEX revision_store ON revision(store, revision);
CREATE INDEX revision_session ON revision(session) WHERE session IS NOT NULL;
CREATE INDEX revision_job ON revision(job) WHERE job IS NOT NULL;
CREATE TABLE rendering(store INTEGER NOT NULL, revision INTEGER NOT NULL, us INTEGER NOT NULL, hash BLOB NOT NULL,
  data BLOB NOT NULL, entries BLOB NOT NULL, PRIMARY KEY(store, revision));
CREATE TABLE entry_id(store INTEGER NOT NULL, id TEXT NOT NULL, PRIMARY KEY(store, id)) WITHOUT ROWID;
CREATE TABLE preimage(store INTEGER NOT NULL, hash BLOB NOT NULL, us INTEGER NOT NULL, revision INTEGER NOT NULL,
  data BLOB NOT NULL, PRIMARY KEY(store, hash));
CREATE TABLE event(seq INTEGER PRIMARY KEY, us INTEGER NOT NULL, profile TEXT NOT NULL, topic TEXT NOT NULL,
  body BLOB NOT NULL);
CREATE INDEX event_profile ON event(profile, seq);
CREATE TABLE request(profile TEXT NOT NULL, request_id TEXT NOT NULL, fingerprint BLOB NOT NULL, us INTEGER NOT NULL,
  answer BLOB NOT NULL, PRIMARY KEY(profile, request_id)) WITHOUT ROWID;
CREATE INDEX request_us ON request(us);
CREATE TABLE refusal(id INTEGER PRIMARY KEY, us INTEGER NOT NULL, profile TEXT NOT NULL, target TEXT NOT NULL,
  name TEXT NOT NULL, text_hash BLOB NOT NULL, reason TEXT NOT NULL, session TEXT, turn TEXT);
CREATE INDEX refusal_text ON refusal(profile, text_hash);
CREATE TABLE session(id TEXT PRIMARY KEY, profile TEXT NOT NULL, key TEXT, snapshot TEXT NOT NULL,
  seen_us INTEGER NOT NULL, closed INTEGER NOT NULL, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE snapshot(id TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE turn(session TEXT NOT NULL, turn TEXT NOT NULL, user INTEGER NOT NULL, status TEXT NOT NULL,
  us INTEGER NOT NULL, PRIMARY KEY(session, turn)) WITHOUT ROWID;
PRAGMA user_version=1;

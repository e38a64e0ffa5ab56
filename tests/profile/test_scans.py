"""memd.profile.scans: each text is scanned once, and the results stay for texts that are asked for."""

from __future__ import annotations

from support.judged import SECRET, TOKEN, FakeScanner, found

from memd.profile.scans import INLINE_US, ScanPool, Scans, is_slow


def test_a_text_is_scanned_once() -> None:
    """And again only when it was forgotten."""
    scanner = FakeScanner()
    scans = Scans(scanner)
    assert scans.findings("a bad text") == scans.findings("a bad text") == (found(start=2, end=5),)
    assert ["a bad text"] == scanner.texts


def test_what_is_asked_for_stays_and_what_passes_goes() -> None:
    """A live entry outlives any number of texts that come by once."""
    scanner = FakeScanner()
    scans = Scans(scanner, chars=40)
    for number in range(20):
        scans.findings("live entry")
        scans.findings(f"passing {number:02}")
    assert 1 == scanner.texts.count("live entry")
    scans.findings("passing 00")
    assert 2 == scanner.texts.count("passing 00")


def test_asking_again_forgets_nothing() -> None:
    """Only new texts fill the cache, also those that a thread found a second time."""
    scans = Scans(FakeScanner(), chars=40)
    scans.findings("another text")
    for _ in range(20):
        scans.findings("live entry")
        scans.keep(scans.scan_all(["live entry"]))
    assert [] == scans.unknown(["another text"])


def test_what_a_thread_found_is_kept() -> None:
    """``scan_all`` keeps nothing itself, so that it may run anywhere."""
    scanner = FakeScanner()
    scans = Scans(scanner)
    texts = scans.unknown(["a", "b bad", "a"])
    assert ["a", "b bad"] == texts
    results = scans.scan_all(texts)
    assert texts == scans.unknown(texts)
    scans.keep(results)
    assert [] == scans.unknown(texts)
    assert (found(start=2, end=5),) == scans.findings("b bad")
    assert ["a", "b bad"] == scanner.texts


def test_secrets_are_masked_and_nothing_else() -> None:
    """The rest of the text stays as it is."""
    scans = ScanPool().scans()
    assert SECRET.replace(TOKEN, "[secret:secret.git-hosting]") == scans.masked(SECRET)
    assert "no secret here" == scans.masked("no secret here")


def test_the_same_settings_share_their_results() -> None:
    """A thousand profiles have one cache; switching a rule off is another."""
    pool = ScanPool()
    assert pool.scans() is pool.scans(())
    assert pool.scans(["secret.jwt"]) is pool.scans(("secret.jwt",))
    other = pool.scans(["secret.git-hosting"])
    assert other is not pool.scans()
    assert () == other.findings(SECRET)
    (finding,) = pool.scans(warn=["secret.git-hosting"]).findings(SECRET)
    assert "warn" == finding.severity
    assert "<ScanPool of 4>" == repr(pool)


def test_only_what_takes_long_is_slow() -> None:
    """One entry is not, however it is written; a store that somebody filled is."""
    assert not is_slow(["x" * 1375])
    assert not is_slow(["short"] * 10)
    assert is_slow(["x" * 2 * INLINE_US])
    assert is_slow(["short"] * 100)
    assert not is_slow([])


def test_a_cache_says_how_much_it_holds() -> None:
    """For whoever looks at a running daemon."""
    scans = Scans(FakeScanner())
    scans.findings("x")
    assert repr(scans).endswith("1 and 0 texts>")


def test_until_the_rules_are_compiled_everything_is_slow() -> None:
    """Compiling takes a second, which no event loop has."""
    pool = ScanPool()
    scans = pool.scans()
    assert scans.is_slow(["x"])
    assert not scans.is_slow([])
    assert {"x": ()} == scans.scan_all(["x"])
    pool.compile()
    assert not scans.is_slow(["x"])
    assert not pool.scans(["secret.jwt"]).is_slow(["x"])

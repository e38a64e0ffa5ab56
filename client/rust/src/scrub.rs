//! The fence: recalled text goes into a prompt inside it, and is taken out of what the model says.

use crate::generated::Fence;

/// Recalled text for the user turn, between the session's two marks on lines of their own; `""` for no text. Marks inside the text are
/// taken out until none is left: they would end the block early.
pub fn fenced(text: &str, fence: &Fence) -> String {
    let mut text = text.to_string();
    while text.contains(&fence.open) || text.contains(&fence.close) {
        text = text.replace(&fence.open, "").replace(&fence.close, "");
    }
    if text.is_empty() {
        text
    } else {
        format!("{}\n{text}\n{}", fence.open, fence.close)
    }
}

/// Takes a session's blocks out of a stream, in chunks of any size. A block is an opening mark, text without marks, and a closing mark;
/// all else is the model's own and comes out as it came in. An opening mark before a backtick is quoted and begins nothing.
pub struct Scrubber {
    fence: Fence,
    block: String, // from an opening mark on; empty outside
    tail: String,  // the end of what has arrived, if a mark may begin there
}

impl Scrubber {
    /// For a session's fence, as `session_open` gave it.
    ///
    /// # Panics
    ///
    /// If its marks cannot be told apart.
    pub fn new(fence: Fence) -> Self {
        let Fence { open, close } = &fence;
        assert!(
            !open.is_empty() && !close.is_empty() && !open.contains(close) && !close.contains(open),
            "the marks of the fence cannot be told apart"
        );
        Scrubber { fence, block: String::new(), tail: String::new() }
    }

    /// The part of what has arrived that is surely the model's own and was not given before.
    pub fn feed(&mut self, chunk: &str) -> String {
        let text = std::mem::take(&mut self.tail) + chunk;
        let (mut own, mut rest) = (String::new(), &text[..]);
        while let Some((at, opens)) = self.next(rest) {
            let mark = if opens { &self.fence.open } else { &self.fence.close };
            let before = &rest[..at];
            rest = &rest[at + mark.len()..];
            if opens {
                own += &self.block; // an opening mark that nothing has closed
                own += before;
                self.block.clone_from(mark);
            } else {
                self.block.clear();
            }
        }
        let (sure, uncertain) = rest.split_at(rest.len() - self.uncertain(rest));
        if self.block.is_empty() {
            own += sure;
        } else {
            self.block += sure;
        }
        self.tail = uncertain.into();
        own
    }

    /// The rest: a block that was never closed is the model's own. Afterwards a new stream begins.
    pub fn close(&mut self) -> String {
        std::mem::take(&mut self.block) + &std::mem::take(&mut self.tail)
    }

    /// The first whole mark that counts here, and whether it opens.
    fn next(&self, text: &str) -> Option<(usize, bool)> {
        let opening = self.opening(text);
        let closing = if self.block.is_empty() { None } else { text.find(&self.fence.close) };
        match (opening, closing) {
            (Some(at), Some(end)) if end < at => Some((end, false)),
            (Some(at), _) => Some((at, true)),
            (None, end) => end.map(|at| (at, false)),
        }
    }

    /// An opening mark of which it is known that no backtick follows.
    fn opening(&self, text: &str) -> Option<usize> {
        let follows = |at: &usize| text[at + self.fence.open.len()..].chars().next();
        text.match_indices(&self.fence.open)
            .map(|(at, _)| at)
            .find(|at| follows(at) != Some('`'))
            .filter(|at| follows(at).is_some())
    }

    /// How many bytes at the end may be the beginning of a mark, or an opening mark of which the next character decides.
    fn uncertain(&self, text: &str) -> usize {
        let Fence { open, close } = &self.fence;
        let longest = open.len().max(close.len()).min(text.len());
        let begins = |end: &str| open.starts_with(end) || (!self.block.is_empty() && close.starts_with(end));
        (1..=longest).rev().find(|length| text.get(text.len() - length..).is_some_and(begins)).unwrap_or(0)
    }
}

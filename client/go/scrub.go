package memd

import "strings"

// Fenced puts recalled text between the session's two marks, on lines of their own, for the user turn; "" for no text. Marks inside
// the text are taken out until none is left: they would end the block early.
func Fenced(text string, fence Fence) string {
	for strings.Contains(text, fence.Open) || strings.Contains(text, fence.Close) {
		text = strings.ReplaceAll(strings.ReplaceAll(text, fence.Open, ""), fence.Close, "")
	}
	if text == "" {
		return ""
	}
	return fence.Open + "\n" + text + "\n" + fence.Close
}

// Scrubber takes a session's blocks out of what a model says, in chunks of any size. A block is an opening mark, text without marks,
// and a closing mark; everything else is the model's own and comes out as it came in. An opening mark before a backtick is quoted
// and begins nothing. Text is held back only while it may still become a block.
type Scrubber struct {
	fence Fence
	block strings.Builder // from an opening mark on; empty outside
	tail  string          // the end of what has arrived, if a mark may begin there
}

// NewScrubber makes one for a session's fence, as SessionOpen gave it.
func NewScrubber(fence Fence) *Scrubber {
	if fence.Open == "" || fence.Close == "" || strings.Contains(fence.Open, fence.Close) || strings.Contains(fence.Close, fence.Open) {
		panic("memd: the marks of the fence cannot be told apart; hand over the fence of SessionOpen as it came")
	}
	return &Scrubber{fence: fence}
}

// Feed gives the part of what has arrived that is surely the model's own and was not given before.
func (s *Scrubber) Feed(chunk string) string {
	text, own := s.tail+chunk, strings.Builder{}
	for {
		at, mark := s.next(text)
		if at < 0 {
			break
		}
		before := text[:at]
		text = text[at+len(mark):]
		if mark == s.fence.Close {
			s.block.Reset()
			continue
		}
		own.WriteString(s.block.String()) // an opening mark that nothing has closed
		own.WriteString(before)
		s.block.Reset()
		s.block.WriteString(mark)
	}
	end := len(text) - s.uncertain(text)
	if s.block.Len() > 0 {
		s.block.WriteString(text[:end])
	} else {
		own.WriteString(text[:end])
	}
	s.tail = text[end:]
	return own.String()
}

// Close gives the rest: a block that was never closed is the model's own. Afterwards a new stream begins.
func (s *Scrubber) Close() string {
	rest := s.block.String() + s.tail
	s.block.Reset()
	s.tail = ""
	return rest
}

// next finds the first whole mark that counts here, -1 if there is none.
func (s *Scrubber) next(text string) (int, string) {
	opening := s.opening(text)
	if s.block.Len() == 0 {
		return opening, s.fence.Open
	}
	closing := strings.Index(text, s.fence.Close)
	if closing >= 0 && (opening < 0 || closing < opening) {
		return closing, s.fence.Close
	}
	return opening, s.fence.Open
}

// opening finds an opening mark of which it is known that no backtick follows.
func (s *Scrubber) opening(text string) int {
	for from := 0; ; {
		at := strings.Index(text[from:], s.fence.Open)
		if at < 0 {
			return -1
		}
		end := from + at + len(s.fence.Open)
		if end == len(text) {
			return -1
		}
		if text[end] != '`' {
			return from + at
		}
		from = end
	}
}

// uncertain is how many bytes at the end may be the beginning of a mark, or an opening mark of which the next character decides.
func (s *Scrubber) uncertain(text string) int {
	for length := min(len(text), max(len(s.fence.Open), len(s.fence.Close))); length > 0; length-- {
		end := text[len(text)-length:]
		if strings.HasPrefix(s.fence.Open, end) || s.block.Len() > 0 && strings.HasPrefix(s.fence.Close, end) {
			return length
		}
	}
	return 0
}

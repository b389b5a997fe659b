package rendezvous

import (
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// TestGolden pins the order of the members for a few keys. The figures come from another program in another language,
// with its own XXH64 and 60-digit logarithms. They must be the same on every machine and in every later version:
// whoever has to change them moves every user's sites to other members.
func TestGolden_S4_2_SameOnEveryMachine(t *testing.T) {
	equal := []Member{{"de", 1}, {"nl", 1}, {"fi", 1}, {"us", 1}, {"jp", 1}}
	unequal := []Member{{"de", 1}, {"nl", 2}, {"fi", 5}, {"us", 1}, {"de", 1}}
	proxy, other, weighted := New("proxy", equal), New("other", equal), New("proxy", unequal)
	for _, it := range []struct {
		text                   string
		key                    uint64
		proxy, other, weighted string
	}{
		{"example.com", 0x2883ba7dc9aa3289, "us de jp nl fi", "nl de jp fi us", "us de de' fi nl"},
		{"b.co.uk", 0x1184e29913156393, "jp us fi de nl", "jp us nl fi de", "fi us de' de nl"},
		{"xn--bcher-kva.example", 0x5fc36e2fc115118b, "nl de jp fi us", "nl jp us fi de", "nl de' de fi us"},
		{"localhost", 0x08c94614ac84e57c, "us jp de fi nl", "de fi nl us jp", "us de' fi nl de"},
		{"a.github.io", 0x0987ba22ed0bcbc3, "us nl fi de jp", "de fi jp us nl", "fi nl us de de'"},
		{"wikipedia.org", 0x7f0bd6e521ecf3e0, "nl us jp de fi", "us fi de nl jp", "nl fi de' us de"},
		{"rust-lang.org", 0xbd81fc1c46f41981, "jp nl de fi us", "de fi nl us jp", "fi nl de de' us"},
		{"", 0xef46db3751d8e999, "nl jp us fi de", "de nl jp fi us", "nl fi de' us de"},
	} {
		if key := xxhash.Sum64String(it.text); key != it.key {
			t.Errorf("%q hashes to %#016x, want %#016x", it.text, key, it.key)
		}
		for _, c := range []struct {
			name, want string
			ring       *Ring
			tags       []string
		}{
			{"proxy", it.proxy, proxy, []string{"de", "nl", "fi", "us", "jp"}},
			{"other", it.other, other, []string{"de", "nl", "fi", "us", "jp"}},
			{"weighted", it.weighted, weighted, []string{"de", "nl", "fi", "us", "de'"}},
		} {
			var tags []string
			for i := c.ring.Pick(it.key); i != None; i = c.ring.Next(it.key, i) {
				tags = append(tags, c.tags[i])
			}
			if got := strings.Join(tags, " "); got != c.want {
				t.Errorf("%s, %q: order %s, want %s", c.name, it.text, got, c.want)
			}
		}
	}
}

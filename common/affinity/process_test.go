package affinity

import "testing"

func TestProcess_S4_5_SameProgram(t *testing.T) {
	for _, it := range []struct {
		name, a, b string
		same       bool
	}{
		{"Windows: case", `C:\Program Files\Mozilla Firefox\firefox.exe`, `c:\program files\mozilla firefox\FIREFOX.EXE`, true},
		{"Windows: slashes", `C:\Games\game.exe`, `C:/Games/game.exe`, true},
		{"Windows: letters beyond ASCII", `C:\Users\ÜMİT\Пример.exe`, `c:\users\ümİt\пРИМЕР.EXE`, true},
		{"Windows: a path longer than a piece", `C:\` + long("Ä") + `\A.exe`, `c:\` + long("ä") + `\a.exe`, true},
		{"Windows: long paths that differ at the end", `C:\` + long("Ä") + `\A.exe`, `C:\` + long("Ä") + `\B.exe`, false},
		{"Windows: network share", `\\Server\Share\app.exe`, `//server/share/app.exe`, false},
		{"Windows: device path", `\Device\HarddiskVolume3\App.exe`, `\device\harddiskvolume3\app.exe`, true},
		{"Windows: another drive", `C:\app.exe`, `D:\app.exe`, false},
		{"Windows: no path", ":System", ":system", false},

		{"macOS: the same", "/Applications/Safari.app/Contents/MacOS/Safari", "/Applications/Safari.app/Contents/MacOS/Safari", true},
		{"macOS: case as the disk has it", "/Applications/Safari.app/Contents/MacOS/Safari", "/applications/safari.app/contents/macos/safari", false},
		{"macOS: helpers are programs of their own", "/Applications/A.app/Contents/MacOS/A", "/Applications/A.app/Contents/Frameworks/A Helper.app/Contents/MacOS/A Helper", false},

		{"Linux: case", "/usr/bin/App", "/usr/bin/app", false},
		{"Linux: a backslash is a letter", `/opt/a\b`, "/opt/a/b", false},
		{"Linux: a colon is a letter", "/c:/app", `\c:\app`, false},
		{"Linux: updated while it runs", "/usr/bin/firefox (deleted)", "/usr/bin/firefox", true},

		{"Android: package", "org.mozilla.firefox", "org.mozilla.firefox", true},
		{"Android: case", "org.example.App", "org.example.app", false},
		{"Android: another package", "org.mozilla.firefox", "org.mozilla.firefox_beta", false},
	} {
		t.Run(it.name, func(t *testing.T) {
			a, b := process.Key(Connection{Process: it.a}), process.Key(Connection{Process: it.b})
			if (a == b) != it.same {
				t.Errorf("%q and %q: same key is %v, want %v", it.a, it.b, a == b, it.same)
			}
		})
	}
}

func long(letter string) (text string) {
	for range 45 {
		text += letter
	}
	return text
}

func TestProcess_S4_5_PackageBeforePath(t *testing.T) {
	for _, it := range []struct {
		name     string
		packages []string
		path     string
		want     string
	}{
		{"Android", []string{"org.mozilla.firefox"}, "/system/bin/app_process64", "org.mozilla.firefox"},
		{"Android: packages that share a user", []string{"org.b", "org.a"}, "", "org.a"},
		{"elsewhere", nil, "/usr/bin/firefox", "/usr/bin/firefox"},
		{"not found", nil, "", ""},
	} {
		if got := ProcessOf(it.packages, it.path); got != it.want {
			t.Errorf("%s: %q, want %q", it.name, got, it.want)
		}
	}
}

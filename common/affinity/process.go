package affinity

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ProcessOf returns what Connection.Process holds: the package on Android, else the path of the executable (S4.5). Of
// packages that share a user id, and so cannot be told apart, it is the first by name, in whatever order they came.
func ProcessOf(packages []string, path string) string {
	if len(packages) > 0 {
		return slices.Min(packages)
	}
	return path
}

// deletedMark is what Linux appends to the path of an executable whose file was replaced while it runs, as every update
// of a package does.
const deletedMark = " (deleted)"

// process adds a process, unless it is missing. Windows paths are compared as Windows does it: without regard to case,
// and with either slash. All others are taken as they are, also on macOS, whose kernel reports every path in the
// spelling that the disk has. On Linux an updated program stays the program that it was.
func (f *framer) process(name string) {
	if isWindowsPath(name) {
		f.end(frameProcess, f.folded(name))
		return
	}
	if strings.HasPrefix(name, "/") {
		name = strings.TrimSuffix(name, deletedMark)
	}
	f.text(frameProcess, name)
}

// isWindowsPath recognises a drive letter (`C:\` or `C:/`) and a leading backslash (`\\server\share`, `\Device\…`).
// Paths of other systems begin with a slash, whatever they contain further on, and package names with a letter.
func isWindowsPath(name string) bool {
	if strings.HasPrefix(name, `\`) {
		return true
	}
	if len(name) < 3 || name[1] != ':' || name[2] != '\\' && name[2] != '/' {
		return false
	}
	letter := name[0] | 0x20
	return 'a' <= letter && letter <= 'z'
}

// folded writes a path in lower case and with backslashes, piece by piece so that nothing is allocated, and returns
// the number of bytes.
func (f *framer) folded(path string) (length int) {
	var space [64]byte
	piece := space[:0]
	for len(path) > 0 {
		r, size := utf8.DecodeRuneInString(path)
		switch {
		case r == utf8.RuneError && size == 1:
			piece = append(piece, path[0])
		case r == '/':
			piece = append(piece, '\\')
		default:
			piece = utf8.AppendRune(piece, unicode.ToLower(r))
		}
		path = path[size:]
		if len(piece) > len(space)-utf8.UTFMax || path == "" {
			_, _ = f.digest.Write(piece)
			length += len(piece)
			piece = space[:0]
		}
	}
	return length
}

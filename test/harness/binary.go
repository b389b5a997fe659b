package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// Tags are the build tags of a release.
const Tags = "with_gvisor,with_quic,with_dhcp,with_utls,with_acme,with_clash_api,with_v2ray_api"

// BinaryVariable names the environment variable that has a program tested that is built already.
const BinaryVariable = "TARAZU_BINARY"

var (
	builtBinary = sync.OnceValues(buildBinary)
	// buildDirectory is written once, while the binary is built.
	buildDirectory string
)

// Binary returns the path of the program, which it builds at the first call.
func Binary(owner Owner) string {
	owner.Helper()
	path, err := builtBinary()
	if err != nil {
		owner.Fatalf("build the program: %v", err)
	}
	return path
}

// RemoveBinary deletes what Binary built, at the end of the whole program: a TestMain calls it.
func RemoveBinary() {
	if buildDirectory != "" {
		_ = os.RemoveAll(buildDirectory)
	}
}

func buildBinary() (string, error) {
	if path := os.Getenv(BinaryVariable); path != "" {
		return filepath.Abs(path)
	}
	module, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	buildDirectory, err = os.MkdirTemp("", "tarazu-binary-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(buildDirectory, "sing-box")
	build := exec.Command("go", "build", "-tags", Tags, "-o", path, "./cmd/sing-box")
	build.Dir = filepath.Dir(strings.TrimSpace(string(module)))
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, output)
	}
	return path, nil
}

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	C "github.com/sagernet/sing-box/constant"
	"github.com/spf13/cobra"
)

// version of this project, set when a release is built.
var version = "0.1.0-dev"

const singBoxModule = "github.com/sagernet/sing-box"

func init() {
	// What servers and dashboards are told, if the build did not say.
	if C.Version == "unknown" {
		C.Version = singBoxVersion()
	}
}

// singBoxVersion is the version of sing-box that this program is built on.
func singBoxVersion() string {
	build, _ := debug.ReadBuildInfo()
	if build != nil {
		for _, module := range build.Deps {
			if module.Path == singBoxModule {
				return strings.TrimPrefix(module.Version, "v")
			}
		}
	}
	return "unknown"
}

func versionCommand() *cobra.Command {
	var nameOnly bool
	command := &cobra.Command{
		Use:   "version",
		Short: "Print current version",
		Args:  cobra.NoArgs,
		Run: func(*cobra.Command, []string) {
			if nameOnly {
				fmt.Println(version)
				return
			}
			printVersion()
		},
	}
	command.Flags().BoolVarP(&nameOnly, "name", "n", false, "print version name only")
	return command
}

func printVersion() {
	fmt.Printf("tarazu version %s\n", version)
	fmt.Printf("Built on: sing-box version %s\n\n", singBoxVersion())
	fmt.Printf("Environment: %s %s/%s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	build, _ := debug.ReadBuildInfo()
	for _, line := range []struct{ key, label string }{{"-tags", "Tags"}, {"vcs.revision", "Revision"}} {
		if value := setting(build, line.key); value != "" {
			fmt.Printf("%s: %s\n", line.label, value)
		}
	}
	if C.CGO_ENABLED {
		fmt.Println("CGO: enabled")
	} else {
		fmt.Println("CGO: disabled")
	}
}

func setting(build *debug.BuildInfo, key string) string {
	if build != nil {
		for _, it := range build.Settings {
			if it.Key == key {
				return it.Value
			}
		}
	}
	return ""
}

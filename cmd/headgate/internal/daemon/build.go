package daemon

import (
	"cmp"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// Build is which program this is.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // of the source; "unknown" when it was not built from a repository
	Go       string `json:"go"`
}

// ReadBuild reads what the linker and the compiler left in the program.
// released is the version that the linker was told; empty means none.
func ReadBuild(released string) Build {
	b := Build{Version: released, Revision: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		b.Version = cmp.Or(b.Version, "unknown")
		return b
	}
	b.Go = info.GoVersion
	b.Version = cmp.Or(b.Version, info.Main.Version, "(devel)")
	dirty := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+modified"
		}
	}
	b.Revision += dirty
	return b
}

// register shows the build as headgate_build_info.
func (b Build) register(reg prometheus.Registerer) error {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace:   "headgate",
		Name:        "build_info",
		Help:        "Always 1; the labels say which program this is.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "goversion": b.Go},
	})
	info.Set(1)
	return reg.Register(info)
}

package admin

// Routes lists the operations of the API.
func Routes() (all []string) {
	for _, r := range (&handler{}).routes() {
		all = append(all, r.method+" "+r.path)
	}
	return all
}

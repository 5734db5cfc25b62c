package lua

import _ "embed" // for the script files

var (
	//go:embed rights.lua
	rights string
	//go:embed give.lua
	give string
	//go:embed lend.lua
	lend string
	//go:embed apply.lua
	apply string
	//go:embed acknowledge.lua
	acknowledge string
	//go:embed look.lua
	look string
	//go:embed begin.lua
	begin string
	//go:embed void.lua
	void string
	//go:embed learn.lua
	learn string
	//go:embed activate.lua
	activate string
	//go:embed region.lua
	region string
)

// The scripts by which rights move between regions; rights.lua describes what they have in common.
var (
	Give        = compose(rights + give)
	Lend        = compose(rights + lend)
	Apply       = compose(rights + apply)
	Acknowledge = compose(rights + acknowledge)
	Look        = compose(rights + look)
	Begin       = compose(rights + begin)
	Void        = compose(rights + void)
	Learn       = compose(rights + learn)
	Activate    = compose(rights + activate)
	// Region stands alone: it reads and changes the region's record.
	Region = region
)

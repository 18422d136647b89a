/** Paths as a hostile model may write them (R40). */
import { Arbitrary, Schema } from "effect"

const pieces = [
  ..."/ . .. ... ~ a b \0 \n \\ % * - é e\u0301 \u202e \ud800 \udfff 💥 c: file link out outside root".split(" "),
  " ",
  "//",
  "/../",
  "/./",
  "../../",
  "..\u0000",
  "%2e%2e/",
  "\uff0e\uff0e/",
  "/workspace",
  "/workspace/",
  "/workspace/../",
  "/proc/self/root",
  "/proc/self/cwd/",
  "/proc/self/fd/3/",
  "/dev/stdin",
  "/etc/passwd",
  "file:///etc/passwd",
  ".choirtmp/",
  "n".repeat(255),
  "n".repeat(256),
  "n/".repeat(8),
  "n/".repeat(2048),
  "n".repeat(4096)
]

export const hostilePath = Arbitrary.map(
  Arbitrary.schema(
    Schema.Array(Schema.Union([Schema.Literals(pieces), Schema.Literals(pieces), Schema.String])).check(
      Schema.isMaxLength(8)
    )
  ),
  (parts) => parts.join("")
)

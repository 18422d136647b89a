/** The authorities that a home's config.json names, for the requests that choirctl sends itself. */
import { join } from "node:path"

// An import of node:fs evaluates exports that load streams and readline, which take as long as a tenth of a call.
const fs = process.getBuiltinModule("node:fs")

/** Trusts them in this process. A file that cannot be used is for `choirctl doctor` and choird to name. */
export const trustHome = async (home: string): Promise<void> => {
  try {
    const text = fs.readFileSync(join(home, "config.json"), "utf8")
    if (!text.includes('"ca_file"')) return
    const config: unknown = JSON.parse(text)
    const ca_file: unknown = Reflect.get(Object(Reflect.get(Object(config), "tls")), "ca_file")
    if (typeof ca_file !== "string") return
    const { takeWayOut } = await import("#src/shared/wire/wayOut.ts")
    takeWayOut({ authorities: fs.readFileSync(ca_file, "utf8") })
  } catch {
    // Whatever is wrong with it, the command may have nothing to do with it.
  }
}

/** Self-signed certificates, made anew for each test that wants one. */
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { temporaryFolder } from "./engines.ts"

/** A certificate for these names, as files and as the text that a client trusts. `days` below 0 make one that is over. */
export const makeCertificateFor = (names: string, days = 1) =>
  Effect.map(temporaryFolder, (folder) => {
    const cert = join(folder, "cert.pem")
    const key = join(folder, "key.pem")
    const kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    const content = ["-subj", "/CN=choird", "-addext", `subjectAltName=${names}`, "-days", String(days)]
    execFileSync("openssl", ["req", ...kind, ...content, "-keyout", key, "-out", cert], { stdio: "ignore" })
    return { cert, key, ca: readFileSync(cert, "utf8") }
  })

export const makeCertificate = makeCertificateFor("IP:127.0.0.1,DNS:localhost")

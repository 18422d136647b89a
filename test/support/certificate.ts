/** Self-signed certificates, made anew for each test that wants one. */
import { execFileSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
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

const KEY_KIND = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]

/** An authority of its own, and a certificate that it signed for these names; all are files. */
export const makeAuthority = (names: ReadonlyArray<string>) =>
  Effect.map(temporaryFolder, (folder) => {
    const at = (name: string) => join(folder, name)
    const openssl = (...args: ReadonlyArray<string>) => execFileSync("openssl", args, { stdio: "ignore" })
    const authority = [
      "-x509",
      "-days",
      "2",
      "-subj",
      "/CN=Private Authority",
      "-addext",
      "keyUsage=critical,keyCertSign"
    ]
    openssl("req", ...authority, ...KEY_KIND, "-keyout", at("ca.key"), "-out", at("ca.pem"))
    openssl("req", ...KEY_KIND, "-subj", "/CN=outside", "-keyout", at("key.pem"), "-out", at("request.pem"))
    writeFileSync(
      at("names"),
      `subjectAltName=${names.map((name) => `DNS:${name}`).join(",")}\nextendedKeyUsage=serverAuth\n`
    )
    const signed = ["-req", "-days", "1", "-in", at("request.pem"), "-CA", at("ca.pem"), "-CAkey", at("ca.key")]
    openssl("x509", ...signed, "-CAcreateserial", "-extfile", at("names"), "-out", at("cert.pem"))
    return { ca: at("ca.pem"), cert: at("cert.pem"), key: at("key.pem") }
  })

/**
 * secrets.json sealed with a passphrase: scrypt makes the keys, AES-256-GCM seals and authenticates. A second key tells a wrong
 * passphrase from a changed file.
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes, scrypt, timingSafeEqual } from "node:crypto"
import { Effect, Redacted, Result, Schema } from "effect"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"

const KEY_BYTES = 32
const SALT_BYTES = 16
const NONCE_BYTES = 12
const TAG_BYTES = 16
const CHECK_BYTES = 32
/** The text whose digest, made with the second key, shows that the passphrase is right. */
const CHECKED = "passphrase of a backup of Choir"
interface Cost {
  readonly n: number
  readonly r: number
  readonly p: number
}
/** The cost for a new file: 128 MiB of memory and about half a second for each guess. */
const COST: Cost = { n: 2 ** 17, r: 8, p: 1 }
/** The memory that a file may ask for when it is opened. */
const MEMORY_BYTES_MAX = 512 * 1024 * 1024
const BLOCK_BYTES = 128
const GCM = "aes-256-gcm"

const base64 = (bytes: number) =>
  Schema.String.check(
    Schema.makeFilter((text) => Buffer.from(text, "base64").length === bytes || `must be ${bytes} bytes of base64`)
  )

/** The parameters are in the file, so that a later Choir may choose others. */
const Sealed = Schema.Struct({
  kdf: Schema.Literal("scrypt"),
  n: Schema.Literals([2 ** 14, 2 ** 15, 2 ** 16, 2 ** 17, 2 ** 18, 2 ** 19]),
  r: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 16 })),
  p: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 4 })),
  salt: base64(SALT_BYTES),
  cipher: Schema.Literal(GCM),
  nonce: base64(NONCE_BYTES),
  tag: base64(TAG_BYTES),
  /** Absent in files of formats 1 and 2. */
  check: Schema.optionalKey(base64(CHECK_BYTES)),
  sealed: Schema.String
})
const decodeSealed = Schema.decodeUnknownResult(Schema.fromJsonString(Sealed), { onExcessProperty: "error" })

/** The sealed text does not open. Nothing was decrypted. */
export class SealRefused extends Schema.TaggedError<SealRefused>()("SealRefused", {
  /** `unknown` where an older file cannot show which of the two it is. */
  reason: Schema.Literals(["passphrase", "changed", "unknown"]),
  problem: Schema.String
}) {
  override get message() {
    return this.problem
  }
}

const changed = (problem: string) => new SealRefused({ reason: "changed", problem })

/** The key of the cipher, which is the same as in files without a check, and the digest that proves the passphrase. */
const keysOf = (passphrase: Redacted.Redacted, salt: Buffer, { n, p, r }: Cost) =>
  Effect.callback<{ readonly key: Buffer; readonly check: Buffer }, SealRefused>((resume) => {
    // The same passphrase typed on another keyboard may be composed of other code points.
    const text = Redacted.value(passphrase).normalize("NFC")
    scrypt(text, salt, 2 * KEY_BYTES, { N: n, r, p, maxmem: MEMORY_BYTES_MAX }, (error, keys) => {
      if (error !== null) return resume(Effect.fail(changed(error.message)))
      const check = createHmac("sha256", keys.subarray(KEY_BYTES)).update(CHECKED).digest()
      return resume(Effect.succeed({ key: keys.subarray(0, KEY_BYTES), check }))
    })
  })

/** Seals a text. It opens only together with the same `bound`, which is not secret. */
export const seal = Effect.fn("sealedSecrets.seal")(function* (
  text: Redacted.Redacted,
  passphrase: Redacted.Redacted,
  bound: unknown,
  cost: Cost = COST
) {
  const salt = randomBytes(SALT_BYTES)
  const nonce = randomBytes(NONCE_BYTES)
  const { check, key } = yield* keysOf(passphrase, salt, cost)
  const cipher = createCipheriv(GCM, key, nonce).setAAD(Buffer.from(canonicalJson(bound)))
  const sealed = Buffer.concat([cipher.update(Redacted.value(text), "utf8"), cipher.final()])
  const fields = { salt, nonce, tag: cipher.getAuthTag(), check, sealed }
  const encoded = Object.fromEntries(Object.entries(fields).map(([name, bytes]) => [name, bytes.toString("base64")]))
  return `${JSON.stringify({ kdf: "scrypt", ...cost, cipher: GCM, ...encoded }, undefined, 2)}\n`
})

/** Opens what {@link seal} sealed. */
export const unseal = Effect.fn("sealedSecrets.unseal")(function* (
  text: string,
  passphrase: Redacted.Redacted,
  bound: unknown
) {
  const decoded = decodeSealed(text)
  if (Result.isFailure(decoded)) return yield* changed("its seal has an unknown format")
  const { success: sealed } = decoded
  if (BLOCK_BYTES * sealed.n * sealed.r > MEMORY_BYTES_MAX)
    return yield* changed("opening its seal would take too much memory")
  const { check, key } = yield* keysOf(passphrase, Buffer.from(sealed.salt, "base64"), sealed)
  if (sealed.check !== undefined && !timingSafeEqual(Buffer.from(sealed.check, "base64"), check))
    return yield* new SealRefused({ reason: "passphrase", problem: "the passphrase is wrong" })
  return yield* Effect.try({
    try: () => {
      const decipher = createDecipheriv(GCM, key, Buffer.from(sealed.nonce, "base64"), { authTagLength: TAG_BYTES })
      decipher.setAAD(Buffer.from(canonicalJson(bound))).setAuthTag(Buffer.from(sealed.tag, "base64"))
      const opened = Buffer.concat([decipher.update(Buffer.from(sealed.sealed, "base64")), decipher.final()])
      return Redacted.make(opened.toString("utf8"))
    },
    catch: () =>
      sealed.check === undefined
        ? new SealRefused({ reason: "unknown", problem: "the passphrase is wrong, or the file was changed" })
        : changed("the passphrase is right, but the file was changed after it was made")
  })
})

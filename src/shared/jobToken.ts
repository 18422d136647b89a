/**
 * The proof that a call is a running core job's (D35): `id.exp.mac`, where the MAC is made with the lease token. Whoever loses the
 * lease loses every job's token with it, and each of them ends sooner, with its job (spec 7.5, R21).
 */
import { createHmac, timingSafeEqual } from "node:crypto"
import { CallId } from "#schema/Ids.ts"

const macOf = (lease: string, job_id: CallId, expires_ms: number): Buffer =>
  createHmac("sha256", lease).update(`${job_id}.${expires_ms}`).digest()

/** A job's token until a time in milliseconds since 1970, as `x-choir-job` carries it. */
export const jobToken = (lease: string, job_id: CallId, expires_ms: number): string =>
  `${job_id}.${expires_ms}.${macOf(lease, job_id, expires_ms).toString("hex")}`

const FORM = /^(?<id>[a-z0-9-]{1,40})\.(?<exp>[0-9]{1,15})\.(?<mac>[0-9a-f]{64})$/u

/** The job that a token names, if it was made with this lease and has time left. */
export const jobOfToken = (lease: string, token: string, now_ms: number): CallId | undefined => {
  const { exp, id, mac } = FORM.exec(token)?.groups ?? {}
  if (id === undefined || exp === undefined || mac === undefined) return undefined
  const job_id = CallId.make(id)
  const expires_ms = Number(exp)
  return timingSafeEqual(macOf(lease, job_id, expires_ms), Buffer.from(mac, "hex")) && now_ms < expires_ms
    ? job_id
    : undefined
}

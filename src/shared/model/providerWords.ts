/** The words of a provider's error in one plain sentence: of JSON, of events, of a page of HTML or XML, or of plain text. Pure. */
import { errorMessage } from "#src/shared/wire/errorMessage.ts"
import { oneLine } from "#src/shared/text/foreignText.ts"

/** Characters of a body that are looked at. */
const LOOKED_CHARS_MAX = 64 * 1024

/** The gateways between a client and a model, by the words of its pages and of its header `server`. */
const GATEWAYS: ReadonlyArray<readonly [words: RegExp, name: string]> = [
  [/cloudflare/iu, "cloudflare"],
  [/cloudfront/iu, "CloudFront"],
  [/openresty/iu, "openresty"],
  [/nginx/iu, "nginx"],
  [/akamai/iu, "Akamai"],
  [/varnish|fastly/iu, "Fastly"],
  [/azure.application.gateway/iu, "Azure Application Gateway"],
  [/awselb|amazon/iu, "Amazon's load balancer"],
  [/google frontend|gws\b|\bgoogle\b/iu, "Google"],
  [/envoy/iu, "envoy"],
  [/traefik/iu, "traefik"],
  [/haproxy/iu, "haproxy"],
  [/caddy/iu, "caddy"],
  [/apache/iu, "Apache"],
  [/iis\b|microsoft-httpapi/iu, "IIS"]
]

const PAGE = /^(?:<!--[^]{0,1000}?-->\s*)?<(?:!doctype html|html|head|body|title|center|h1)\b/iu

/** A page in place of an answer, by the name of what wrote it; `server` is the header. */
export const pageIn = (body: string, server = ""): string | undefined => {
  const page = body.slice(0, LOOKED_CHARS_MAX).replace(/^[\uFEFF\s]+/u, "")
  if (!PAGE.test(page)) return undefined
  const name = GATEWAYS.find(([words]) => words.test(page))?.[1] ?? GATEWAYS.find(([words]) => words.test(server))?.[1]
  if (name !== undefined) return `a page of ${name}`
  const title = oneLine(/<title[^<>]{0,200}>([^<]{1,200})/iu.exec(page)?.[1] ?? "", 80)
  return title === "" ? "a page of HTML" : `a page with the title "${title}"`
}

/** The data of the first event that has some. */
const dataIn = (body: string): string | undefined => /^data:[ \t]*(\S.*)$/mu.exec(body)?.[1]

const xmlMessage = (body: string): string | undefined =>
  body.startsWith("<?xml") ? /<message>([^<]{1,500})/iu.exec(body)?.[1] : undefined

/** The provider's words, without what is around them; a page of HTML has none. */
export const saidIn = (body: string): string => {
  const text = body.slice(0, LOOKED_CHARS_MAX).trim()
  const data = errorMessage(body) === undefined ? dataIn(text) : undefined
  return oneLine(
    errorMessage(body) ?? (data === undefined ? undefined : (errorMessage(data) ?? data)) ?? xmlMessage(text) ?? text
  )
}

/** A page, or the provider's words, as the end of a sentence. */
export const detailOf = (body: string, server?: string): string => {
  if (body.trim() === "") return ""
  const page = pageIn(body, server)
  return page === undefined ? `: ${saidIn(body)}` : `, ${page}`
}

const SPENT_CODES =
  /insufficient[_ ]?(?:quota|balance|credits?|funds)|billing_(?:hard_limit_reached|not_active|error)|payment_required|out_of_credits|arrearage|quota_exhausted/iu
const SPENT_WORDS =
  /credit balance is too low|insufficient (?:account )?(?:balance|credits?|funds|quota)|(?:out of|not enough|no (?:remaining )?) ?(?:api )?credits|billing hard limit|account is (?:in arrears|not active)|balance is (?:not enough|insufficient)|余额不足|欠费/iu
const CURRENT_QUOTA = /exceeded your current quota/iu
const COMES_BACK = /retry(?:Delay| in| after)|try again in|per[- ]?(?:minute|second|day)|\b[RT]P[MD]\b/iu

/** Whether an account has no quota or money left, and waiting does not bring it back. Google says the same words of a limit that comes back. */
export const isSpent = (words: string): boolean =>
  SPENT_CODES.test(words) || SPENT_WORDS.test(words) || (CURRENT_QUOTA.test(words) && !COMES_BACK.test(words))

/** The problem of an account that has used up its quota, and the place to solve it. */
export const SPENT =
  "the quota of the model's account at its provider is used up, and waiting does not bring it back: check the account's plan and payment there"

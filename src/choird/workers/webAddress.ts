/** Addresses of pages, as a model writes them. */

/** Characters of an address: what no browser's history holds is data. */
const ADDRESS_CHARS_MAX = 2048

/** The page's address, or what is wrong with it in words for a model. */
export const pageAddress = (text: string, base?: string): URL | string => {
  const url = URL.parse(text.trim(), base)
  if (url === null) return "the URL is incomplete: include https:// and the host"
  if (url.protocol !== "http:" && url.protocol !== "https:") return "only http:// and https:// pages can be read"
  if (url.username !== "" || url.password !== "") return "leave the user and password out of the url"
  return url.href.length > ADDRESS_CHARS_MAX ? `a url has at most ${ADDRESS_CHARS_MAX} characters` : url
}

/** The host of an address that a page is at; none of one that no site has, such as about:blank. */
export const siteOf = (address: string): string | undefined => {
  const url = URL.parse(address)
  const origin = url?.protocol === "blob:" ? URL.parse(url.origin) : url
  return origin === null || origin === undefined || origin.hostname === "" ? undefined : origin.hostname
}

/** The address of a model's API as config.json has it. Pure. */

/** A request's own path, which people copy along with the address. */
const REQUEST_PATH = /(?:\/chat\/completions|\/responses|\/messages)?\/*$/u

/** The address without the path of a request, which Choir adds by itself. */
export const apiAddress = (text: string): string => text.trim().replace(REQUEST_PATH, "")

/** Whether an address has the path of a request at its end, so that no request to it can succeed. */
export const hasRequestPath = (text: string): boolean =>
  /\/(?:chat\/completions|responses|messages)\/*$/u.test(text.trim())

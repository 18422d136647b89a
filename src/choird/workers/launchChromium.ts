/** The start of Chromium by Playwright, in the process of an agent's browser: with no way to any network but the proxy. */
import { Effect } from "effect"
import type { Browser } from "playwright-core"
import { HOST_PATH } from "#src/choird/runtime/HostProcess.ts"
import type { BrowserStart } from "./browserProtocol.ts"

/** From the start of Chromium until it answers, on a machine that is busy. */
const LAUNCH_MS_MAX = 60_000
/** The JavaScript heap of one page, everywhere. */
const PAGE_HEAP_MB_MAX = 512

/** Beside those of Playwright: no network but the proxy, nothing of Chromium's own on it, and no graphics. */
const FLAGS = [
  "--disable-quic",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-domain-reliability",
  "--disable-sync",
  "--no-first-run",
  "--no-pings",
  "--webrtc-ip-handling-policy=disable_non_proxied_udp",
  // Names are the proxy's to ask for, and nothing else's.
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
  `--js-flags=--max-old-space-size=${PAGE_HEAP_MB_MAX}`
]

export interface RunningChromium {
  readonly browser: Browser
  /** Whether Chromium's own sandbox is around its pages. */
  readonly isSandboxed: boolean
}

const start = ({ program, proxy }: BrowserStart, chromiumSandbox: boolean) =>
  Effect.tryPromise({
    try: async () => {
      const { chromium } = await import("playwright-core")
      return await chromium.launch({
        executablePath: program,
        chromiumSandbox,
        headless: true,
        args: FLAGS,
        // What belongs to no page has no token, and gets nothing. `<-loopback>` sends loopback here as well.
        proxy: { server: proxy.server, bypass: "<-loopback>" },
        env: { PATH: HOST_PATH },
        handleSIGHUP: false,
        handleSIGINT: false,
        handleSIGTERM: false,
        timeout: LAUNCH_MS_MAX
      })
    },
    catch: (cause) => String(cause).split("\n", 1)[0] ?? ""
  })

/** Starts Chromium; without its own sandbox only where it may. It ends with this process. Fails with the problem in words. */
export const launchChromium = (order: BrowserStart): Effect.Effect<RunningChromium, string> => {
  const sandboxed = Effect.map(start(order, true), (browser) => ({ browser, isSandboxed: true }))
  const bare = Effect.map(start(order, false), (browser) => ({ browser, isSandboxed: false }))
  return order.may_be_bare ? Effect.catch(sandboxed, () => bare) : sandboxed
}

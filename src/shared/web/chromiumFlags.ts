/** How Chromium is started for agents: without graphics, and asking nobody but the sites of its pages. */

/** The JavaScript heap of one page, everywhere. */
const PAGE_HEAP_MB_MAX = 512

/** The subjects that Chromium would ask others about by itself: the kinds of a form's fields, translations, hints for pages, and whether a page is known as bad. */
const ASKING_FEATURES = [
  "AutofillServerCommunication",
  "OptimizationHintsFetching",
  "OptimizationTargetPrediction",
  "SafeBrowsingHashPrefixRealTimeLookups",
  "SegmentationPlatform",
  "Translate"
]
/** The features that Playwright switches off. Chromium takes the last list alone, so that theirs is repeated here. */
const PLAYWRIGHT_FEATURES_OFF = [
  "AvoidUnnecessaryBeforeUnloadCheckSync",
  "DestroyProfileOnBrowserClose",
  "HttpsUpgrades",
  "HttpsFirstBalancedModeAutoEnable",
  "LensOverlay",
  "MediaRouter",
  "PaintHolding",
  "ThirdPartyStoragePartitioning",
  "AvoidCorsURLLoaderRestartOnRedirect",
  "TcpPortRandomizationWin",
  "OptimizationHints",
  "NetworkTimeServiceQuerying",
  "AimEnabled",
  "PreconnectToSearch",
  "msForceBrowserSignIn",
  "msEdgeUpdateLaunchServicesPreferredVersion"
]

/** Beside those of Playwright: no network but the proxy, nothing of Chromium's own on it, and no graphics. */
export const CHROMIUM_FLAGS: ReadonlyArray<string> = [
  "--disable-quic",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-domain-reliability",
  "--disable-client-side-phishing-detection",
  `--disable-features=${[...PLAYWRIGHT_FEATURES_OFF, ...ASKING_FEATURES].join(",")}`,
  "--disable-sync",
  "--no-first-run",
  "--no-pings",
  "--webrtc-ip-handling-policy=disable_non_proxied_udp",
  // Names are the proxy's to ask for, and nothing else's.
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
  `--js-flags=--max-old-space-size=${PAGE_HEAP_MB_MAX}`
]

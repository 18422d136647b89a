import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { CHROMIUM_FLAGS } from "#src/shared/web/chromiumFlags.ts"
import { agent, layerRig, pageOf, refOf, Rig } from "../../support/browserRig.ts"
import { ensureDebianPackages } from "../../support/packages.ts"
import { LAYER_MS_MAX } from "../../support/size.ts"

const playwright = dirname(createRequire(import.meta.url).resolve("playwright-core/package.json"))

describe("Chromium's flags", () => {
  it("switch off all that Playwright switches off, since the last list of features counts", () => {
    const source = readFileSync(join(playwright, "lib/coreBundle.js"), "utf8")
    const list = /^ {4}disabledFeatures = \[(.*?)^ {4}\]/msu.exec(source)?.[1] ?? ""
    const features = [...list.matchAll(/^\s*"(\w+)"/gmu)].map(([, name = ""]) => name)
    assert.isAbove(features.length, 10)
    const off = CHROMIUM_FLAGS.find((flag) => flag.startsWith("--disable-features="))?.split(/[=,]/u) ?? []
    assert.deepStrictEqual(
      features.filter((name) => !off.includes(name)),
      []
    )
  })
})

/** What a browser likes to ask others about: who may log in, pay and live where, in another language. */
const FORMS =
  pageOf(`<h1>Anmeldung und Bezahlung</h1><p>Bitte geben Sie hier Ihre Anschrift und Ihre Karte an, damit wir liefern.</p>
<form action=/login method=post><label>Mail <input name=email type=email autocomplete=username></label>
<label>Password <input name=password type=password autocomplete=current-password></label><button>Log in</button></form>
<form action=/pay method=post><label>Name <input name=name autocomplete=name></label><label>Street <input name=address autocomplete=street-address></label>
<label>City <input name=city></label><label>Zip <input name=zip></label><label>Card <input name=cardnumber autocomplete=cc-number></label>
<label>Until <input name=exp autocomplete=cc-exp></label><button>Pay</button></form>`)

const missing = ensureDebianPackages(["chromium"], "what Chromium asks others")

describe.skipIf(missing !== undefined)("Chromium", () => {
  layer(layerRig, { timeout: LAYER_MS_MAX, excludeTestServices: true })((it) => {
    it.effect("asks nobody but the sites of its pages, whatever is open: forms, logins, downloads and papers", () =>
      Effect.gen(function* () {
        const { resolved, serve } = yield* Rig
        serve.set("/forms", FORMS)
        const epoch = yield* Scope.make()
        const { browse, seen } = yield* agent(epoch)
        const open = (path: string) => seen({ action: "open", url: `http://site.test${path}` })
        for (const [field, text] of [
          [/textbox "Street"/u, "Main Street 1"],
          [/textbox "Card"/u, "4111111111111111"]
        ] as const)
          yield* seen({ action: "type", ref: refOf((yield* open("/forms")).text ?? "", field), text })
        let { text = "" } = yield* open("/forms")
        text = (yield* seen({ action: "type", ref: refOf(text, /textbox "Mail"/u), text: "ada@site.test" })).text ?? ""
        text = (yield* seen({ action: "type", ref: refOf(text, /textbox "Password"/u), text: "hunter2" })).text ?? ""
        const logged = yield* seen({ action: "click", ref: refOf(text, /button "Log in"/u) })
        assert.match(logged.text ?? "", /posted: email=ada%40site.test&password=hunter2/u)
        for (const path of ["/download", "/paper.pdf"])
          yield* browse({ action: "open", url: `http://site.test${path}` })
        yield* open("/forms")
        assert.deepStrictEqual([...resolved.keys()], ["site.test"])
        yield* Scope.close(epoch, Exit.void)
      })
    )
  })
})

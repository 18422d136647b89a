/**
 * The pages of an agent as they were shown: to its model by the newest snapshot, and to the person who was asked about a call. An action is done to the element
 * that was shown, or not at all.
 */
import { Effect } from "effect"
import type { Page } from "playwright-core"
import type { CallId } from "#schema/Ids.ts"
import type { HostCall } from "#src/choird/hosttools/HostTool.ts"
import { BROWSE_TOOL, type BrowseInput } from "#src/shared/web/hostQueries.ts"
import { callDigest } from "#src/shared/session/calls.ts"
import { BoundedMap } from "#src/shared/boundedMap.ts"
import { ActionFailed } from "./ActionFailed.ts"
import { type Around, NOT_FRAMED } from "./frameAround.ts"
import type { LongNames } from "./longNames.ts"
import type { PageState } from "./pageState.ts"
import { focusedElement, isSameElement, PAGE, type ShownElement, shownElement } from "./shownElement.ts"

/** Calls about which a person was asked and whose page is remembered; more of them do not wait at once. */
const HELD_MAX = 32

/** Characters of what a page says of itself in a refusal. */
const WORDS_CHARS_MAX = 120

/** A page as a snapshot of all of it showed it. */
export interface Shown extends PageState {
  readonly page: Page
  /** The host of its address, or those that wrote it. */
  readonly site: string
  readonly snapshot: string
}

/** The object of a call: an element of a page, both as they were shown. */
export interface Target extends Omit<Shown, "snapshot"> {
  readonly ref: string | undefined
  readonly element: ShownElement
  readonly around: Around
  /** The names that the tree leaves out, where a person was asked and there may be some. */
  readonly long_names?: LongNames
}

/** Questions to the browser about what the tree does not show; `undefined` where the element is not there any more. */
interface Unshown {
  frameAround(page: Page, ref: string): Effect.Effect<Around | undefined, ActionFailed>
  longNames(page: Page, ref: string): Effect.Effect<LongNames | undefined, ActionFailed>
}

interface HeldTarget {
  readonly digest: string
  readonly target: Target
}

const refuse = (problem: string) => new ActionFailed({ problem, is_unknown: false })

/** Words of a page in quotes. */
const quoted = (text: string) => JSON.stringify(text.slice(0, WORDS_CHARS_MAX).toWellFormed())

/** An element in words, of which the page wrote the name. */
const words = ({ name, role }: ShownElement) => `${role} ${quoted(name)}`

const NOT_DONE = "Nothing was done: take a snapshot, and look again"

/** The element of a ref, or the one with the focus where there is no ref; else the reason in words. */
const elementIn = ({ focus, snapshot }: Pick<Shown, "focus" | "snapshot">, ref: string | undefined) => {
  if (ref === undefined && focus === "frame")
    return "the focus is in a frame: name the element that takes the key by its ref"
  const element = ref === undefined ? (focus === "page" ? PAGE : focusedElement(snapshot)) : shownElement(snapshot, ref)
  if (element === undefined)
    return ref === undefined
      ? "what has the focus is not in the snapshot: name the element that takes the key by its ref"
      : `there is no element ${ref} in the newest snapshot: take another one`
  return ref !== undefined && element.has_frame
    ? `there is a frame in ${words(element)}: name the element in the frame by its ref`
    : element
}

/** The refusal of an action on what is not on its page any more. */
export const isGone = ({ element }: Pick<Target, "element">) =>
  refuse(`the page has changed: ${words(element)} is not there any more. ${NOT_DONE}`)

export class ShownPages {
  readonly #unshown: Unshown
  #newest: Shown | undefined
  readonly #held = new BoundedMap<CallId, HeldTarget>(HELD_MAX)

  constructor(unshown: Unshown) {
    this.#unshown = unshown
  }

  /** The newest snapshot; none where a page could not be shown. */
  showed(shown: Shown | undefined) {
    this.#newest = shown
  }

  /** The target of a call about which a person is asked; it stays the same, whatever is shown afterwards. */
  hold(call_id: CallId, input: BrowseInput): Effect.Effect<Target, ActionFailed> {
    return Effect.gen({ self: this }, function* () {
      const digest = callDigest(BROWSE_TOOL, input)
      const held = this.#held.get(call_id) ?? {
        digest,
        target: yield* this.#withLongNames(yield* this.#newestTarget(input.ref))
      }
      if (held.digest !== digest)
        return yield* refuse(`a person was asked about another input of this call. ${NOT_DONE}`)
      this.#held.set(call_id, held)
      return held.target
    })
  }

  /** The target of a call: what the person saw who was asked about it, else what the newest snapshot shows. */
  target(input: BrowseInput, call: HostCall | undefined): Effect.Effect<Target, ActionFailed> {
    return Effect.suspend(() => {
      if (call?.is_asked !== true) return this.#newestTarget(input.ref)
      const held = this.#held.get(call.call_id)
      if (held === undefined)
        return Effect.fail(refuse(`the page that was shown to the person who approved this is gone. ${NOT_DONE}`))
      return held.digest === callDigest(BROWSE_TOOL, input)
        ? Effect.succeed(held.target)
        : Effect.fail(refuse(`a person approved another input of this call. ${NOT_DONE}`))
    })
  }

  /** Fails where a page is not as it was shown: another one, at another address, or with something else instead of the element. */
  stillAs(target: Target, now: Shown): Effect.Effect<void, ActionFailed> {
    return Effect.gen({ self: this }, function* () {
      const { address, element, page, ref, site, title } = target
      if (now.page !== page) return yield* refuse(`another tab is open than when this was shown. ${NOT_DONE}`)
      for (const [what, before, after] of [
        ["at", site, now.site],
        ["at", address, now.address],
        ["titled", title, now.title]
      ] as const)
        if (before !== after)
          return yield* refuse(
            `the page was ${what} ${quoted(before)} when it was shown, and is ${what} ${quoted(after)} now. ${NOT_DONE}`
          )
      if (ref !== undefined && shownElement(now.snapshot, ref) === undefined) return yield* isGone(target)
      const found = elementIn(now, ref)
      if (typeof found === "string") return yield* refuse(`the page has changed: ${found}. ${NOT_DONE}`)
      const { around } = target
      const now_around = yield* this.#around(page, ref, found)
      if (JSON.stringify(around.addresses) !== JSON.stringify(now_around.addresses))
        return yield* refuse(`the page has changed: the frame of ${words(element)} is at another address. ${NOT_DONE}`)
      if (isSameElement(element, found) && (yield* this.#hasSameLongNames(target, found))) return undefined
      const change = words(found) === words(element) ? "does not say the same" : `is now ${words(found)}`
      return yield* refuse(`the page has changed: ${words(element)} ${change}. ${NOT_DONE}`)
    })
  }

  #newestTarget(ref: string | undefined): Effect.Effect<Target, ActionFailed> {
    return Effect.gen({ self: this }, function* () {
      if (this.#newest === undefined) return yield* refuse("no page was shown: open one first")
      const { snapshot, ...shown } = this.#newest
      const element = elementIn({ ...shown, snapshot }, ref)
      if (typeof element === "string") return yield* refuse(element)
      return { ...shown, ref, element, around: yield* this.#around(shown.page, ref, element) }
    })
  }

  #around(page: Page, ref: string | undefined, element: ShownElement): Effect.Effect<Around, ActionFailed> {
    return ref === undefined
      ? Effect.succeed(NOT_FRAMED)
      : this.#stillThere(this.#unshown.frameAround(page, ref), element)
  }

  /** With the long names, and how the first one begins where nothing else is shown of the element. */
  #withLongNames(target: Target): Effect.Effect<Target, ActionFailed> {
    const { element, page } = target
    if (!element.has_nameless || element.ref === undefined) return Effect.succeed(target)
    return Effect.map(this.#stillThere(this.#unshown.longNames(page, element.ref), element), (long_names): Target => {
      const name = element.name === "" ? long_names.first : element.name
      return { ...target, element: { ...element, name }, long_names }
    })
  }

  #hasSameLongNames({ element, long_names, page }: Target, found: ShownElement): Effect.Effect<boolean, ActionFailed> {
    if (long_names === undefined || found.ref === undefined) return Effect.succeed(long_names === undefined)
    return Effect.map(
      this.#stillThere(this.#unshown.longNames(page, found.ref), element),
      ({ digest }) => digest === long_names.digest
    )
  }

  #stillThere<A>(asked: Effect.Effect<A | undefined, ActionFailed>, element: ShownElement) {
    return asked.pipe(
      Effect.flatMap(Effect.fromNullishOr),
      Effect.mapError(() => isGone({ element }))
    )
  }
}

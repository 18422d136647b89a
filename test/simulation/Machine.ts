/** The host that runs containers: starts agents, kills them late, and now and then takes one for dead that still runs. */
import type { SessionId } from "#schema/Ids.ts"
import { startAgent } from "./Agent.ts"
import type { Process } from "./Kernel.ts"
import type { Server, Wire } from "./Network.ts"
import type { Seed } from "./Seed.ts"
import type { World } from "./World.ts"

/** How long an ended program may take until its process is gone, in ms. */
const EXIT_MS = 50
/** How long after its exit nothing of an agent's program may be left, in ms (R20). */
const QUIET_MS = 2000

export interface Container {
  readonly number: number
  readonly session_id: SessionId
  readonly epoch: number
  readonly process: Process
  /** Whether the host says that it is gone. */
  gone: boolean
  exit_code: number | null | undefined
  readonly waiting: Array<() => void>
}

export class Machine {
  readonly containers: Array<Container> = []
  /** The wire between agents and choird, which can be cut. */
  readonly wire: Wire
  readonly #world: World
  readonly #draw: Seed
  readonly #provider: Server

  constructor(world: World, provider: Server) {
    this.#world = world
    this.#draw = world.draw("machine")
    this.#provider = provider
    this.wire = { latency_ms: 1, cut_until: 0, troubles: [] }
  }

  /** Agents whose process runs, zombies included. */
  get living(): ReadonlyArray<Container> {
    return this.containers.filter(({ process }) => process.alive)
  }

  launch(session_id: SessionId, epoch: number, token: string, choird: Server): Container {
    const { invariants, kernel, note } = this.#world
    const number = this.containers.length + 1
    const process = kernel.process(`agent${number}`)
    const container: Container = {
      number,
      session_id,
      epoch,
      process,
      gone: false,
      exit_code: undefined,
      waiting: []
    }
    this.containers.push(container)
    invariants.launched(container, this.containers)
    note(`${process.name} starts: epoch ${epoch} of ${session_id}`)
    const toProvider: Wire = { latency_ms: 5, cut_until: 0, troubles: [] }
    const ways = { choird: [this.wire, choird], provider: [toProvider, this.#provider] } as const
    kernel.after(kernel.world, this.#draw.wait(200), () => {
      if (!process.alive) return
      startAgent(this.#world, { number, session_id, epoch, token }, process, ways, (code) => {
        // A program that ended leaves nothing behind: no timer and nothing to do.
        kernel.after(kernel.world, QUIET_MS, () => invariants.left(container))
        kernel.after(kernel.world, this.#draw.wait(EXIT_MS), () => this.#exited(container, code))
      })
    })
    return container
  }

  #exited(container: Container, code: number | null): void {
    if (container.exit_code !== undefined) return
    container.exit_code = code
    if (code === null) this.#world.kernel.kill(container.process)
    this.#world.note(`${container.process.name} exits with ${code ?? "a signal"}`)
    for (const tell of container.waiting.splice(0)) this.#world.kernel.post(this.#world.kernel.world, tell)
  }

  /** Ends a process at once, as a crash does. */
  crash(container: Container): void {
    this.#world.kernel.kill(container.process)
    this.#exited(container, null)
  }

  /** Hears of a container's end, within the second that R7 gives. */
  onExit(container: Container, tell: () => void): void {
    const { kernel } = this.#world
    const later = () => void kernel.after(kernel.world, this.#draw.wait(100), tell)
    if (container.exit_code !== undefined) later()
    else container.waiting.push(later)
  }

  /** Kills; `gone` hears when nothing is left, as far as the host knows. */
  kill(container: Container, gone: () => void): void {
    const { faults, kernel, note } = this.#world
    const done = () => {
      container.gone = true
      gone()
    }
    if (container.exit_code !== undefined || !container.process.alive) return void kernel.after(kernel.world, 1, done)
    const late = faults.active("zombie") && this.#draw.chance(0.5)
    if (late && this.#draw.chance(0.5)) {
      note(`${container.process.name} is taken for dead`)
      this.#world.invariants.zombie(container)
      kernel.after(kernel.world, this.#draw.wait(8000), () => this.crash(container))
      faults.onCalm(() => this.crash(container))
      kernel.after(kernel.world, 5, done)
      return
    }
    kernel.after(kernel.world, late ? this.#draw.between(100, 8000) : this.#draw.wait(20), () => {
      this.crash(container)
      done()
    })
  }
}

/** The mutation that a test runs for; mutants.config.ts puts its id here, and in every other run there is none. */
export const MUTATION_ID: string | undefined = undefined

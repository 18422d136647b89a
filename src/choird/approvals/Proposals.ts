/** All types of proposals behind one interface: each is previewed and executed by the service of its type (layerProposals). */
import { Context } from "effect"
import type { Proposal } from "./Proposal.ts"
import type { ProposalType } from "./ProposalType.ts"

export class Proposals extends Context.Service<Proposals, ProposalType<Proposal>>()("choir/choird/Proposals") {}

import type { VoteView } from '../stores/vote-view.ts';
import { deniedBy } from './approval-status.ts';
import { type Ending, endingTexts } from './ending.ts';

/** Why one request ended: its ending, and what is known beyond it. */
export interface Cause {
  readonly ending: Ending;
  /** The vote that ended the access, if one did. */
  readonly denial?: VoteView | undefined;
  /** How the pod ended (`PodView.ended`), if that ended the access. Lost if another process completes the end, after the Pod is deleted. */
  readonly podEnd?: string | undefined;
}

/** The cause as a clause, for conditions, Events, and audit lines. */
export function causeText({ ending, denial, podEnd }: Cause): string {
  if (denial) return deniedBy({ vote: denial }).message;
  return podEnd === undefined ? endingTexts[ending] : `its pod has ended: ${podEnd}; create a new request`;
}

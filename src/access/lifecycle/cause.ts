import { type Ending, endingTexts } from '../../api/access/ending.ts';
import type { VoteView } from '../stores/vote-view.ts';
import { deniedBy } from './approval-status.ts';

export interface Cause {
  readonly ending: Ending;
  readonly denial?: VoteView | undefined;
  /** `PodView.ended`. Lost if another process completes the end after the Pod is deleted. */
  readonly podEnd?: string | undefined;
}

/** A clause for conditions, Events, and audit lines. */
export function causeText({ ending, denial, podEnd }: Cause): string {
  if (denial) return deniedBy({ vote: denial }).message;
  return podEnd === undefined ? endingTexts[ending] : `its pod has ended: ${podEnd}; create a new request`;
}

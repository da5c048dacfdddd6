import { accessVoteKind, type VoteSpec } from '../../api/access/access-vote.ts';
import { requestLabel } from '../../api/access/names.ts';
import type { KubeObject } from '../../api/object.ts';
import { readObject } from '../../api/schema/kind.ts';
import { parseTime } from '../../kit/clock.ts';
import { type ViewMetadata, viewMetadata } from './access-views.ts';

/** An AccessVote, which `Votes` judges. */
export interface VoteView extends ViewMetadata {
  /** From the label `requestLabel`. */
  readonly requestUid: string;
  /** Epoch ms. */
  readonly createdAtMs: number;
  /** False for a vote after the deletion of its request: the leader deletes it after the review. */
  readonly hasOwner: boolean;
  readonly spec: VoteSpec;
}

/** Undefined if it violates its schema, or lacks the label or metadata. */
export function viewVote(object: KubeObject): VoteView | undefined {
  const metadata = viewMetadata(object);
  const requestUid = object.metadata.labels?.[requestLabel];
  const createdAtMs = parseTime(object.metadata.creationTimestamp ?? '');
  const read = readObject(accessVoteKind, object);
  if (!metadata || requestUid === undefined || createdAtMs === undefined || !read.ok) return undefined;
  const hasOwner = (object.metadata.ownerReferences ?? []).length > 0;
  return { ...metadata, requestUid, createdAtMs, hasOwner, spec: read.value.spec };
}

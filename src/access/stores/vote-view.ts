import { accessVoteKind, type VoteSpec } from '../../api/access/access-vote.ts';
import { requestLabel } from '../../api/access/names.ts';
import type { KubeObject } from '../../api/object.ts';
import { readObject } from '../../api/schema/kind.ts';
import { parseTime } from '../../kit/clock.ts';
import { type ViewMetadata, viewMetadata } from './access-views.ts';

/** An AccessVote. Nothing in it is verified. */
export interface VoteView extends ViewMetadata {
  /** The uid of the request, from the label `requestLabel`. */
  readonly requestUid: string;
  /** Epoch ms. */
  readonly createdAtMs: number;
  /**
   * False for a vote about `Review` whose request was already deleted when the vote was created. Kubernetes does not garbage-collect such a
   * vote: the leader deletes it after the review.
   */
  readonly hasOwner: boolean;
  readonly spec: VoteSpec;
}

/** The projection of a vote. Undefined if it violates its schema, or lacks the label or a metadata field that the API server sets. */
export function viewVote(object: KubeObject): VoteView | undefined {
  const metadata = viewMetadata(object);
  const requestUid = object.metadata.labels?.[requestLabel];
  const createdAtMs = parseTime(object.metadata.creationTimestamp ?? '');
  const read = readObject(accessVoteKind, object);
  if (!metadata || requestUid === undefined || createdAtMs === undefined || !read.ok) return undefined;
  const hasOwner = (object.metadata.ownerReferences ?? []).length > 0;
  return { ...metadata, requestUid, createdAtMs, hasOwner, spec: read.value.spec };
}

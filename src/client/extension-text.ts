import { chooseExtension } from '../access/policy/extension-choice.ts';
import { maxReasonLength } from '../api/access/access-config.ts';
import { accessVotes } from '../api/access/access-vote.ts';
import type { RequestSpec } from '../api/access/kinds.ts';
import { requestLabel } from '../api/access/names.ts';
import type { KubeObject } from '../api/object.ts';
import { formatTime, parseTime } from '../kit/clock.ts';
import { quote } from '../kit/errors.ts';
import { own } from '../kit/json-value.ts';
import { templateSpecOf } from './approver-text.ts';
import { awaitedDecision } from './choices.ts';
import type { ClusterConnection } from './cluster-connection.ts';
import { specOf, statusOf } from './request-state.ts';
import { lessThanAsked, timeFrom } from './times.ts';
import { unlessForbidden } from './voted-template.ts';

type Extension = NonNullable<RequestSpec['extensions']>[number];

/** The extension whose decision a request waits for. */
export function awaitedExtension(request: KubeObject): Extension | undefined {
  const [, number] = /^Extension-(\d+)$/.exec(awaitedDecision(request) ?? '') ?? [];
  return number === undefined ? undefined : specOf(request).extensions?.[Number(number) - 1];
}

/** `2 times, until access has lasted 6h, without approvals`, or `none`. */
export function extensionsText(template: KubeObject): string {
  const { extension, approvals } = templateSpecOf(template).accessConfig ?? {};
  if (!extension) return 'none';
  const { times, total } = extension;
  const how =
    !approvals || extension.approvals === 'None' ? 'without approvals' : 'each after the same approvals as access';
  return `${times === 1 ? 'once' : `${times} times`}, until access has lasted ${total}, ${how}`;
}

/** If the awaited extension were approved. */
export interface ExtensionOutlook {
  /** The latest end of access, epoch ms; undefined if the server would refuse. */
  readonly endMs: number | undefined;
  /** The end and what limits it, or why the server would refuse. */
  readonly text: string;
}

/** By the current template. The client does not read the pod, whose deadline may be earlier. */
export function extensionOutlook(
  request: KubeObject,
  asked: Extension,
  template: KubeObject,
  nowMs: number,
): ExtensionOutlook {
  const { grant, extensions = [] } = statusOf(request);
  const { extension } = templateSpecOf(template).accessConfig ?? {};
  const chosen = chooseExtension(asked, extension, {
    startMs: parseTime(grant?.startsAt ?? request.metadata.creationTimestamp ?? '') ?? nowMs,
    endMs: grantedEndMs(request) ?? nowMs,
    decided: extensions.filter(({ state }) => state !== 'Pending').length,
    granted: extensions.filter(({ state }) => state === 'Granted').length,
    emergency: specOf(request).emergency === true,
  });
  if ('code' in chosen)
    return { endMs: undefined, text: `none, because the server would refuse it (${chosen.code}): ${chosen.message}` };
  const limit = chosen.shortenedBy === 'total' ? `, because the template allows ${extension?.total} in total` : '';
  return { endMs: chosen.endMs, text: `${timeFrom(chosen.endMs, nowMs)} at the latest${limit}` };
}

/** End of access with the first `count` extensions (default all), epoch ms. */
function grantedEndMs(request: KubeObject, count?: number): number | undefined {
  const { grant, extensions = [] } = statusOf(request);
  return extensions
    .slice(0, count)
    .reduce((latestMs, { expiresAt }) => parseTime(expiresAt ?? '') ?? latestMs, parseTime(grant?.expiresAt ?? ''));
}

/** A vote that approved an extension. */
export interface ExtensionVote {
  /** User name; empty if unknown. */
  readonly voter: string;
  /** The longest extension that it approves, a Go duration. */
  readonly max: string | undefined;
}

/** By their uids; empty if the user may not list votes. */
export async function extensionVotes(
  { cluster }: Pick<ClusterConnection, 'cluster'>,
  request: KubeObject,
): Promise<ReadonlyMap<string, ExtensionVote>> {
  const { namespace = '', uid = '' } = request.metadata;
  const uids = new Set((statusOf(request).extensions ?? []).flatMap(({ votes = [] }) => votes));
  if (uids.size === 0) return new Map();
  const listed = await unlessForbidden(
    cluster.client.list(accessVotes, { namespace, labelSelector: `${requestLabel}=${uid}` }),
  );
  // The uids are those that the server counted, so no other vote is shown.
  const items = listed instanceof Error ? [] : listed.items.filter(({ metadata }) => uids.has(metadata.uid ?? ''));
  return new Map(
    items.map(({ metadata, spec }) => {
      const max = own(spec, 'max');
      const voter = String(own(own(spec, 'voter'), 'username') ?? '');
      return [metadata.uid ?? '', { voter, max: max === undefined ? undefined : String(max) }];
    }),
  );
}

/** One line for each extension; only counts the approvals if a vote is missing. */
export function extensionLines(request: KubeObject, votes: ReadonlyMap<string, ExtensionVote>): string[] {
  const decided = statusOf(request).extensions ?? [];
  return (specOf(request).extensions ?? []).map(({ by, reason = '' }, index) => {
    const { state = 'Pending', message = '', expiresAt = '', votes: uids = [] } = decided[index] ?? {};
    const [before, after] = [grantedEndMs(request, index), parseTime(expiresAt)];
    const less = before === undefined || after === undefined ? undefined : lessThanAsked(after - before, by);
    const approvals = uids
      .flatMap((uid) => votes.get(uid) ?? [])
      .map(({ voter, max }) => (max === undefined ? voter : `${voter} (at most ${max})`));
    const count = uids.length === 1 ? '1 person' : `${uids.length} people`;
    const approvedBy =
      uids.length === 0 ? '' : `approved by ${approvals.length === uids.length ? approvals.join(' and ') : count}`;
    return [
      `by ${by}${reason === '' ? '' : `, because ${quote(reason, maxReasonLength)}`}: ${state}${less === undefined ? '' : ` only ${less}`}`,
      after === undefined ? '' : `until ${formatTime(after)}`,
      approvedBy,
      message,
    ]
      .filter((part) => part !== '')
      .join(', ');
  });
}

import { type ChosenExtension, chooseExtension } from '../access/policy/extension-choice.ts';
import type { Violation } from '../access/policy/policy.ts';
import { maxReasonLength } from '../api/access/access-config.ts';
import type { RequestSpec } from '../api/access/kinds.ts';
import type { KubeObject } from '../api/object.ts';
import { parseTime } from '../kit/clock.ts';
import { quote } from '../kit/errors.ts';
import { awaitedDecision } from './choices.ts';
import { specOf, stateOf, statusOf, templateSpecOf } from './request-state.ts';

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

/**
 * The latest end of access if the extension were approved, or why the server would refuse it: by
 * the current template. The client does not read the pod, whose deadline may be earlier.
 */
export function latestEnd(
  request: KubeObject,
  asked: Extension,
  template: KubeObject,
  nowMs: number,
): ChosenExtension | Violation {
  const { grant, extensions = [] } = statusOf(request);
  return chooseExtension(asked, templateSpecOf(template).accessConfig?.extension, {
    startMs: parseTime(grant?.startsAt ?? request.metadata.creationTimestamp ?? '') ?? nowMs,
    endMs: stateOf(request).endsMs ?? nowMs,
    decided: extensions.filter(({ state }) => state !== 'Pending').length,
    granted: extensions.filter(({ state }) => state === 'Granted').length,
    emergency: specOf(request).emergency === true,
  });
}

/** One line for each extension. */
export function extensionLines(request: KubeObject): string[] {
  const decided = statusOf(request).extensions ?? [];
  return (specOf(request).extensions ?? []).map(({ by, reason = '' }, index) => {
    const { state = 'Pending', message = '', expiresAt = '' } = decided[index] ?? {};
    const why = reason === '' ? '' : `, because ${quote(reason, maxReasonLength)}`;
    const until = expiresAt === '' ? '' : `until ${expiresAt}`;
    return [`by ${by}${why}: ${state}`, until, message].filter((part) => part !== '').join(', ');
  });
}

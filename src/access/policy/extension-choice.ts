import type { ExtensionConfig } from '../../api/access/access-config.ts';
import type { RequestedExtension } from '../../api/access/request-spec.ts';
import { formatTime } from '../../kit/clock.ts';
import { quote } from '../../kit/errors.ts';
import { durationText, parseGoDuration, toMilliseconds } from '../../kit/go-duration.ts';
import { refuse, type Violation } from './policy.ts';

/** Epoch ms. */
export interface Extendable {
  readonly startMs: number;
  /** With all granted extensions. */
  readonly endMs: number;
  /** How many extensions were granted or refused. */
  readonly decided: number;
  readonly granted: number;
  /** No one approved emergency access. */
  readonly emergency: boolean;
  /** When the kubelet stops the pod, regardless of the grant. */
  readonly podEndMs?: number | undefined;
}

export interface ChosenExtension {
  /** Epoch ms, rounded down to a whole second. */
  readonly endMs: number;
  /** Why access ends before the requested time. */
  readonly shortenedBy: 'total' | 'pod' | 'vote' | undefined;
}

/**
 * The end moves by `by`, at most `maxMs` (the smallest `max` of the votes), within `total` of the
 * template, and never beyond the pod.
 */
export function chooseExtension(
  { by }: Pick<RequestedExtension, 'by'>,
  config: ExtensionConfig | undefined,
  { startMs, endMs, decided, granted, emergency, podEndMs = Number.POSITIVE_INFINITY }: Extendable,
  maxMs = Number.POSITIVE_INFINITY,
): ChosenExtension | Violation {
  const field = `spec.extensions[${decided}].by`;
  // First, because another template would not help.
  if (emergency)
    return refuse('NotExtendable', 'emergency access cannot be extended; create a new request', 'spec.extensions', 403);
  if (!config)
    return refuse('NotExtendable', 'the template allows no extension; create a new request', 'spec.extensions', 403);
  if (granted >= config.times) {
    const times = config.times === 1 ? 'once' : `${config.times} times`;
    return refuse(
      'NotExtendable',
      `access was extended ${times}, as often as the template allows; create a new request`,
      'spec.extensions',
      403,
    );
  }
  const asked = parseGoDuration(by);
  if ('error' in asked) return refuse('InvalidDuration', `${field} ${asked.error}`, field, 422);
  if (asked.ns < 1_000_000_000n) {
    return refuse(
      'InvalidDuration',
      `${field} must be at least 1s, not ${quote(by)}; write a Go duration, for example 30m`,
      field,
      422,
    );
  }
  const total = parseGoDuration(config.total);
  const latestMs = startMs + ('ns' in total ? toMilliseconds(total.ns) : 0);
  const wantedMs = endMs + Math.min(toMilliseconds(asked.ns), maxMs);
  const chosenMs = Math.floor(Math.min(wantedMs, latestMs, podEndMs) / 1000) * 1000;
  if (chosenMs <= endMs && podEndMs < latestMs) {
    return refuse(
      'NotExtendable',
      `the pod stops at ${formatTime(podEndMs)} by its activeDeadlineSeconds, which cannot be raised; create a new request`,
      'spec.extensions',
      403,
    );
  }
  if (chosenMs <= endMs) {
    const lasts = durationText(BigInt(endMs - startMs) * 1_000_000n);
    const longest = 'ns' in total ? durationText(total.ns) : config.total;
    return refuse(
      'NotExtendable',
      `asked for ${durationText(asked.ns)} more; access already lasts ${lasts}, and the template allows ${longest} in total; create a new request`,
      'spec.extensions',
      403,
    );
  }
  const isShorter = chosenMs < Math.floor((endMs + toMilliseconds(asked.ns)) / 1000) * 1000;
  const limit = wantedMs <= Math.min(latestMs, podEndMs) ? 'vote' : latestMs <= podEndMs ? 'total' : 'pod';
  return { endMs: chosenMs, shortenedBy: isShorter ? limit : undefined };
}

import type { ExtensionConfig } from '../../api/access/access-config.ts';
import type { RequestedExtension } from '../../api/access/request-spec.ts';
import { formatTime } from '../../kit/clock.ts';
import { quote } from '../../kit/errors.ts';
import { durationText, parseGoDuration, toMilliseconds } from '../../kit/go-duration.ts';
import { refuse, type Violation } from './policy.ts';

/** Open access and its extensions so far, as input of `chooseExtension`. All times are epoch ms. */
export interface Extendable {
  readonly startMs: number;
  /** The end with all granted extensions. */
  readonly endMs: number;
  /** How many extensions were granted or refused. */
  readonly decided: number;
  /** How many extensions were granted. */
  readonly granted: number;
  /** Whether it is emergency access, which no one approved. */
  readonly emergency: boolean;
  /** When the kubelet stops the pod, regardless of the grant. Undefined if the pod has no deadline. */
  readonly podEndMs?: number | undefined;
}

/** The end of access with the extension. */
export interface ChosenExtension {
  /** The new end, epoch ms, rounded down to a whole second. */
  readonly endMs: number;
  /**
   * What limits the extension: the `total` of the template, the deadline of the pod, or `max` of a vote. Undefined if it ends access at the
   * requested time, rounded down to whole seconds.
   */
  readonly shortenedBy: 'total' | 'pod' | 'vote' | undefined;
}

/**
 * The end of access with one more extension. It moves by the requested duration `by`, but by at most `maxMs` (the smallest `max` of the
 * votes, milliseconds; default: no limit). Access lasts at most `total` of the template, and never longer than the pod. Emergency access
 * cannot be extended. Codes `NotExtendable`, `InvalidDuration`, `TooManyExtensions`, and `TotalReached`.
 */
export function chooseExtension(
  { by }: Pick<RequestedExtension, 'by'>,
  config: ExtensionConfig | undefined,
  { startMs, endMs, decided, granted, emergency, podEndMs = Number.POSITIVE_INFINITY }: Extendable,
  maxMs = Number.POSITIVE_INFINITY,
): ChosenExtension | Violation {
  const field = `spec.extensions[${decided}].by`;
  if (!config)
    return refuse('NotExtendable', 'the template allows no extension; create a new request', 'spec.extensions', 403);
  if (emergency) {
    return refuse('NotExtendable', 'emergency access cannot be extended; create a new request', 'spec.extensions', 403);
  }
  if (granted >= config.times) {
    const times = config.times === 1 ? 'once' : `${config.times} times`;
    return refuse(
      'TooManyExtensions',
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
      'TotalReached',
      `asked for ${durationText(asked.ns)} more; access already lasts ${lasts}, and the template allows ${longest} in total; create a new request`,
      'spec.extensions',
      403,
    );
  }
  const isShorter = chosenMs < Math.floor((endMs + toMilliseconds(asked.ns)) / 1000) * 1000;
  const limit = wantedMs <= Math.min(latestMs, podEndMs) ? 'vote' : latestMs <= podEndMs ? 'total' : 'pod';
  return { endMs: chosenMs, shortenedBy: isShorter ? limit : undefined };
}

import { type Material, newSignedPair, serves } from './material.ts';

/** What to do with a material once every configuration trusts its authorities. */
type Step =
  /** Write it to the Secret; `why` is for the log. */
  | { readonly kind: 'store'; readonly material: Material; readonly why: string }
  | { readonly kind: 'wait'; readonly delayMs: number };

/** The state on which the next step of a rotation depends. */
interface Moment {
  /** Names that the certificate must have. */
  readonly names: readonly string[];
  readonly nowMs: number;
  /** For how long every webhook configuration has trusted the authorities, as the watch of this replica shows. */
  readonly trustedForMs: number;
}

/** Every API server is expected to know an authority this long after the watch of this replica showed it. */
export const settleMs = 10_000;
/**
 * Every ready replica is expected to serve a new pair after this long. A replica replaces a silent watch within half a minute. Without any
 * answer from the API server for a minute, it is not ready.
 */
export const graceMs = 5 * 60_000;

/** The next step for the stored material. The Secret stores each step, so that the next leader continues where this one stopped. */
export function nextStep(material: Material, { names, nowMs, trustedForMs }: Moment): Step {
  const { next, previousAuthority, ...served } = material;
  if (next) {
    if (trustedForMs < settleMs) return { kind: 'wait', delayMs: settleMs - trustedForMs };
    const promoted = { ...next, previousAuthority: served.authority };
    return { kind: 'store', material: promoted, why: 'the new certificate is trusted; replicas serve it from now on' };
  }
  const dueAtMs = dueAt(material);
  if (nowMs >= dueAtMs) return renewal(material, names, nowMs, 'two thirds of its lifetime have passed');
  if (!serves(material, names)) return renewal(material, names, nowMs, `it does not cover ${names.join(', ')}`);
  if (previousAuthority === undefined) return { kind: 'wait', delayMs: dueAtMs - nowMs };
  if (trustedForMs < graceMs) return { kind: 'wait', delayMs: graceMs - trustedForMs };
  return { kind: 'store', material: served, why: 'every replica has had 5 minutes to load the new certificate' };
}

/** The material with a successor: the first step of every rotation. */
export const withNext = (material: Material, names: readonly string[], nowMs: number): Material => ({
  ...material,
  next: newSignedPair(names, nowMs),
});

function renewal(material: Material, names: readonly string[], nowMs: number, reason: string): Step {
  return {
    kind: 'store',
    material: withNext(material, names, nowMs),
    why: `the certificate needs a successor: ${reason}`,
  };
}

function dueAt({ pair: { startsAtMs, expiresAtMs } }: Material): number {
  return Math.floor(startsAtMs + (2 / 3) * (expiresAtMs - startsAtMs));
}

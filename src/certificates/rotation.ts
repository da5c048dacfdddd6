import { type Material, newTrusted, serves } from './material.ts';

/** What to do with a material whose authorities are all trusted by now. */
type Step =
  /** Write it to the Secret; `why` is for the log. */
  | { readonly kind: 'store'; readonly material: Material; readonly why: string }
  | { readonly kind: 'wait'; readonly delayMs: number };

interface Moment {
  /** What the certificate has to serve. */
  readonly names: readonly string[];
  readonly nowMs: number;
  /** For how long every webhook configuration has trusted the authorities, as seen by our own watch. */
  readonly trustedForMs: number;
}

/** Any API server has heard by then of an authority that our watch told us of. */
export const settleMs = 10_000;
/** Any replica that is ready serves the new pair by then: one that hears nothing for a minute is not. */
export const graceMs = 5 * 60_000;

/** One step at a time, each from what is stored, so that whoever leads next goes on where this one stopped. */
export function nextStep(material: Material, { names, nowMs, trustedForMs }: Moment): Step {
  const { next, previousAuthority, ...served } = material;
  if (next) {
    if (trustedForMs < settleMs) return { kind: 'wait', delayMs: settleMs - trustedForMs };
    const promoted = { ...next, previousAuthority: served.authority };
    return { kind: 'store', material: promoted, why: 'the new certificate is trusted and is served from now on' };
  }
  const dueAtMs = dueAt(material);
  if (nowMs >= dueAtMs) return renewal(material, names, nowMs, 'two thirds of its life are over');
  if (!serves(material, names)) return renewal(material, names, nowMs, `it is not for ${names.join(', ')}`);
  if (previousAuthority === undefined) return { kind: 'wait', delayMs: dueAtMs - nowMs };
  if (trustedForMs < graceMs) return { kind: 'wait', delayMs: graceMs - trustedForMs };
  return { kind: 'store', material: served, why: 'the certificate before is served by nobody any more' };
}

/** The same with a successor: the first step of every rotation. */
export const withNext = (material: Material, names: readonly string[], nowMs: number): Material => ({
  ...material,
  next: newTrusted(names, nowMs),
});

function renewal(material: Material, names: readonly string[], nowMs: number, reason: string): Step {
  return {
    kind: 'store',
    material: withNext(material, names, nowMs),
    why: `the certificate gets a successor: ${reason}`,
  };
}

function dueAt({ pair: { startsAtMs, expiresAtMs } }: Material): number {
  return Math.floor(startsAtMs + (2 / 3) * (expiresAtMs - startsAtMs));
}

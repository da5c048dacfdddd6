import type { ExtensionStatus } from '../../api/access/status.ts';
import { type Clock, formatTime } from '../../kit/clock.ts';
import { CodedError } from '../../kit/errors.ts';
import { type PolicyCheck, policiesAwaited, requestUncertified } from '../policies/policy-check.ts';
import type { Violation } from '../policy/policy.ts';
import type { RequestView } from '../stores/access-views.ts';
import type { Extension, ExtensionStep } from './facts.ts';
import type { GrantReporter } from './grant-reporter.ts';
import type { Memories } from './memory.ts';
import { decidedExtensions } from './request-ends.ts';
import type { StatusWriter } from './status-writer.ts';

/** Characters, as in the CRD. */
const maxMessage = 2048;

interface ExtenderDeps {
  readonly status: StatusWriter;
  readonly reporter: GrantReporter;
  readonly policies: PolicyCheck;
  readonly memories: Memories;
  readonly clock: Clock;
}

/** Extends open access: an entry in `status.extensions` moves its end. No object changes. */
export class Extender {
  readonly #deps: ExtenderDeps;

  constructor(deps: ExtenderDeps) {
    this.#deps = deps;
  }

  /** Rejects with a 409 ApiError if the request changed, and with `AuditUnavailable`. */
  extend(request: RequestView, step: ExtensionStep, signal: AbortSignal): Promise<RequestView> {
    const { asked, to } = step;
    if (to.state === 'Pending') return this.#show(request, { by: asked.by, ...to }, signal);
    if (to.state === 'Denied') return this.#refuse(request, asked.by, to.violation, signal);
    return this.#grant(request, step, to, signal);
  }

  async #grant(
    request: RequestView,
    { asked, access }: ExtensionStep,
    { endMs, votes }: Extract<Extension, { state: 'Granted' }>,
    signal: AbortSignal,
  ): Promise<RequestView> {
    const { policies, reporter, memories, clock } = this.#deps;
    const proof = await policies.certify(request.createdAtMs, signal);
    if (proof === 'gap') throw new CodedError('PoliciesMissing', policiesAwaited);
    if (proof === 'uncertified') return this.#refuse(request, asked.by, requestUncertified, signal);
    const [number, expiresAt] = [access.decided + 1, formatTime(endMs)];
    const memory = memories.of(request);
    const line = `${number} ${expiresAt}`;
    if (memory.extensionJournaled !== line)
      await reporter.journalExtension(request, { number, asked, expiresAt, votes });
    memory.extensionJournaled = line;
    signal.throwIfAborted();
    // Access may have ended meanwhile. An extension never opens it again.
    if (clock.now() >= access.endMs) return request;
    const uids = votes.length > 0 ? { votes: votes.map(({ vote }) => vote.uid) } : {};
    const written = await this.#show(request, { by: asked.by, state: 'Granted', expiresAt, ...uids }, signal);
    reporter.extended(request, expiresAt);
    return written;
  }

  async #refuse(request: RequestView, by: string, violation: Violation, signal: AbortSignal): Promise<RequestView> {
    const message = `${violation.code}: ${violation.message}`.slice(0, maxMessage);
    const written = await this.#show(request, { by, state: 'Denied', message }, signal);
    this.#deps.reporter.extensionRefused(request, violation);
    return written;
  }

  #show(request: RequestView, extension: ExtensionStatus, signal: AbortSignal): Promise<RequestView> {
    const extensions = [...decidedExtensions(request), extension];
    return this.#deps.status.show(request, { is: 'extended', extensions }, signal);
  }
}

const undecided = 'WrongState: access ended before the server decided the extension; create a new request' as const;

/** Refuses what no one can decide once the access has ended. Undefined if there is nothing. */
export function refuseUndecided(request: RequestView): readonly ExtensionStatus[] | undefined {
  const decided = decidedExtensions(request);
  const asked = request.grant && request.spec.extensions?.[decided.length];
  return asked && [...decided, { by: asked.by, state: 'Denied', message: undecided }];
}

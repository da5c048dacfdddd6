import { clusterInventories } from '../../api/inventory/names.ts';
import { backoffMs } from '../../kit/backoff.ts';
import { type Clock, sleep } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import type { Client } from '../../kube/client.ts';
import { codeOf, isForbidden, isUnreachable } from '../../kube/errors.ts';
import type { Log } from '../../observe/log.ts';
import type { Entry } from '../entry.ts';
import { noSuchRunCode } from '../policy/violation.ts';
import type { AuthorizationProof } from '../ports.ts';
import type { EntryAccounts, Grantee } from './entry-accounts.ts';
import type { RunTokens } from './tokens.ts';

interface DryRunProofDeps {
  readonly entries: () => Iterable<Entry>;
  readonly accounts: Pick<EntryAccounts, 'deleteAccount'>;
  readonly tokens: Pick<RunTokens, 'forRun'>;
  /** Authenticates with this token only. */
  readonly clientWith: (token: string) => { readonly client: Client; close(): Promise<void> };
  readonly clock: Clock;
  readonly log: Log;
}

/** No component can have this name, so it never has a run. */
const probeAccount: Grantee = { name: '0-proof', kubeconfig: 'none' };
/** While there is no entry. */
const pollMs = 100;
/** Between attempts. Backs off after a whole round, an accepted write, or `unreachable`. */
const delays = { baseMs: 500, capMs: 30_000 };

/**
 * `notEnforced`: the API server accepted the write. `unreachable`: no answer, 429, or 5xx, for
 * example because it cannot reach the webhook. `inconclusive`: any other error.
 */
type AttemptResult = 'enforced' | 'notEnforced' | 'inconclusive' | 'unreachable';

/** Proves write authorization: the webhook must deny a dry-run write by a token without a run. */
export class DryRunProof implements AuthorizationProof {
  readonly #deps: DryRunProofDeps;
  #proved = false;
  /** By namespace: UIDs of the entries tried in this round. An accepted write ends the round. */
  readonly #tried = new Map<string, Set<string>>();

  constructor(deps: DryRunProofDeps) {
    this.#deps = deps;
  }

  get proved(): boolean {
    return this.#proved;
  }

  async prove(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    let backoffs = 0;
    while (!this.#proved && !signal.aborted) {
      const entry = this.#nextEntry();
      // Without an entry, there is no object to write to.
      const result = entry && (await this.#attempt(entry, signal));
      this.#proved = result === 'enforced';
      if (this.#proved) return;
      const isRoundOver = result === 'notEnforced' || (this.#tried.size > 0 && !this.#nextEntry());
      if (isRoundOver) this.#tried.clear();
      let waitMs = result ? delays.baseMs : pollMs;
      if (isRoundOver || result === 'unreachable')
        waitMs = backoffMs({ ...delays, attempt: backoffs++, jitter: 'none' });
      await sleep(clock, waitMs, signal).catch(() => undefined);
    }
  }

  async #attempt(entry: Entry, signal: AbortSignal): Promise<AttemptResult> {
    const { log } = this.#deps;
    const { namespace, name, uid } = entry.ref;
    this.#tried.set(namespace, (this.#tried.get(namespace) ?? new Set<string>()).add(uid));
    try {
      const problem = await this.#writeDryRun(entry, signal);
      if (problem === undefined) log.info('write authorization of components is enforced; components may run');
      else
        log.error('write authorization of components is not enforced; no component runs; the server checks again', {
          problem,
        });
      return problem === undefined ? 'enforced' : 'notEnforced';
    } catch (error) {
      const fields = { entry: `${namespace}/${name}`, error: describe(error) };
      if (!signal.aborted)
        log.warn(
          'the server could not check the write authorization of components; no component runs; it tries again',
          fields,
        );
      return isUnreachable(error) ? 'unreachable' : 'inconclusive';
    }
  }

  /**
   * One unusable entry must not stop all components, so the proof tries each, first in namespaces
   * with few tried ones.
   */
  #nextEntry(): Entry | undefined {
    let best: Entry | undefined;
    let bestRank = Number.POSITIVE_INFINITY;
    for (const entry of this.#deps.entries()) {
      const tried = this.#tried.get(entry.ref.namespace);
      const rank = 2 * (tried?.size ?? 0) + (entry.deleting ? 1 : 0);
      if (rank >= bestRank || tried?.has(entry.ref.uid)) continue;
      best = entry;
      bestRank = rank;
    }
    return best;
  }

  /** Resolves to the problem if the write was accepted. Rejects if the result is inconclusive. */
  async #writeDryRun(entry: Entry, signal: AbortSignal): Promise<string | undefined> {
    const { accounts, tokens, clientWith } = this.#deps;
    const { token } = await tokens.forRun(entry, probeAccount, signal);
    const { client, close } = clientWith(token);
    try {
      await client.mergePatch(
        clusterInventories,
        entry.ref,
        { status: {} },
        { dryRun: true, subresource: 'status', signal },
      );
      return 'the API server accepted a status write by a token without a run; the webhook for clusterinventories/status must reject it; check that the ValidatingWebhookConfiguration of drawbridge exists: kubectl get validatingwebhookconfigurations';
    } catch (error) {
      if (isForbidden(error) && codeOf(error) === noSuchRunCode) return undefined;
      throw error;
    } finally {
      await close();
      await accounts.deleteAccount(entry.ref, probeAccount.name, signal);
    }
  }
}

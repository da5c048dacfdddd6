import { clusterInventories } from '../../api/inventory/names.ts';
import { backoffMs } from '../../kit/backoff.ts';
import { type Clock, sleep } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import type { Client } from '../../kube/client.ts';
import { isForbidden, isUnreachable } from '../../kube/errors.ts';
import type { Log } from '../../observe/log.ts';
import type { Entry } from '../entry.ts';
import { noSuchRunCode } from '../policy/violation.ts';
import type { AuthorizationProof } from '../ports.ts';
import type { EntryAccounts, Grantee } from './entry-accounts.ts';
import type { RunTokens } from './tokens.ts';

interface DryRunProofDeps {
  readonly entries: () => Iterable<Entry>;
  readonly accounts: Pick<EntryAccounts, 'withdrawFrom'>;
  readonly tokens: Pick<RunTokens, 'forAccount'>;
  /** A client that authenticates with this token only. */
  readonly clientWith: (token: string) => { readonly client: Client; close(): Promise<void> };
  readonly clock: Clock;
  readonly log: Log;
}

/** No component can have this name, so it never has a run. */
const probeAccount: Grantee = { name: '0-proof', kubeconfig: 'none' };
/** Interval between checks for a first entry, milliseconds. */
const pollMs = 100;
/** Delay between two trials: `baseMs` between entries, backoff up to `capMs` after a full round or an outage. */
const pauses = { baseMs: 500, capMs: 30_000 };

/** Proves write authorization with a dry-run write that the webhook must reject: its token holds no run. */
export class DryRunProof implements AuthorizationProof {
  readonly #deps: DryRunProofDeps;
  #proved = false;
  /** UIDs of the entries tried in this round, by namespace. */
  readonly #tried = new Map<string, Set<string>>();

  constructor(deps: DryRunProofDeps) {
    this.#deps = deps;
  }

  get proved(): boolean {
    return this.#proved;
  }

  async prove(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    let rounds = 0;
    while (!this.#proved && !signal.aborted) {
      const entry = this.#untried();
      // Without an entry there is nothing to write and nothing to dispatch.
      const found = entry && (await this.#trial(entry, signal));
      this.#proved = found === 'enforced';
      if (this.#proved) return;
      const isRoundOver = found === 'open' || (this.#tried.size > 0 && !this.#untried());
      if (isRoundOver) this.#tried.clear();
      let waitMs = found ? pauses.baseMs : pollMs;
      if (isRoundOver || found === 'away') waitMs = backoffMs({ ...pauses, attempt: rounds++, jitter: 'none' });
      await sleep(clock, waitMs, signal).catch(() => undefined);
    }
  }

  async #trial(entry: Entry, signal: AbortSignal): Promise<'enforced' | 'open' | 'unknown' | 'away'> {
    const { log } = this.#deps;
    const { namespace, name, uid } = entry.ref;
    this.#tried.set(namespace, (this.#tried.get(namespace) ?? new Set<string>()).add(uid));
    try {
      const problem = await this.#try(entry, signal);
      if (problem === undefined) log.info('write authorization of components is proved');
      else log.error('write authorization of components is not enforced; no component runs', { problem });
      return problem === undefined ? 'enforced' : 'open';
    } catch (error) {
      const about = { entry: `${namespace}/${name}`, error: describe(error) };
      if (!signal.aborted) log.warn('write authorization of components is not proved yet; no component runs', about);
      return isUnreachable(error) ? 'away' : 'unknown';
    }
  }

  /**
   * The next untried entry, so that one unusable entry does not stop all components. Prefers namespaces with few tried entries, and entries
   * that are not being deleted.
   */
  #untried(): Entry | undefined {
    let best: Entry | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (const entry of this.#deps.entries()) {
      const tried = this.#tried.get(entry.ref.namespace);
      const rank = 2 * (tried?.size ?? 0) + (entry.deleting ? 1 : 0);
      if (rank < least && !tried?.has(entry.ref.uid)) [best, least] = [entry, rank];
    }
    return best;
  }

  /** Tries one entry. Resolves to the problem, or to undefined if the proof succeeded. Rejects if the result is inconclusive. */
  async #try(entry: Entry, signal: AbortSignal): Promise<string | undefined> {
    const { accounts, tokens, clientWith } = this.#deps;
    const { token } = await tokens.forAccount(entry, probeAccount, signal);
    const { client, close } = clientWith(token);
    try {
      await client.mergePatch(
        clusterInventories,
        entry.ref,
        { status: {} },
        { dryRun: true, subresource: 'status', signal },
      );
      return 'the API server accepted a status write by a token without a run; the webhook for clusterinventories/status must reject it; check that its ValidatingWebhookConfiguration exists';
    } catch (error) {
      if (isForbidden(error) && describe(error).includes(`${noSuchRunCode}: `)) return undefined;
      throw error;
    } finally {
      await close();
      await accounts.withdrawFrom(entry.ref, probeAccount.name, signal);
    }
  }
}

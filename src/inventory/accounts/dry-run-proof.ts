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
  /** A client that calls with this token and nothing else. */
  readonly clientWith: (token: string) => { readonly client: Client; close(): Promise<void> };
  readonly clock: Clock;
  readonly log: Log;
}

/** No component can have this name, so that it never has a run. */
const nobody: Grantee = { name: '0-proof', kubeconfig: 'none' };
/** How often somebody looks for a first entry. */
const lookMs = 100;
/** Between two trials: at other entries, and the longest when all have been tried or another one would tell no more. */
const pauses = { baseMs: 500, capMs: 30_000 };

/** Proves that writes of components are fenced, by one that has to be refused: a dry run, with a token that holds no run. */
export class DryRunProof implements AuthorizationProof {
  readonly #deps: DryRunProofDeps;
  #proved = false;
  /** By namespace, in this round: uids of the entries. */
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
      // Without an entry there is nothing to write into, and nothing to dispatch.
      const found = entry && (await this.#trial(entry, signal));
      this.#proved = found === 'fenced';
      if (this.#proved) return;
      const isRoundOver = found === 'open' || (this.#tried.size > 0 && !this.#untried());
      if (isRoundOver) this.#tried.clear();
      let waitMs = found ? pauses.baseMs : lookMs;
      if (isRoundOver || found === 'away') waitMs = backoffMs({ ...pauses, attempt: rounds++, jitter: 'none' });
      await sleep(clock, waitMs, signal).catch(() => undefined);
    }
  }

  async #trial(entry: Entry, signal: AbortSignal): Promise<'fenced' | 'open' | 'unknown' | 'away'> {
    const { log } = this.#deps;
    const { namespace, name, uid } = entry.ref;
    this.#tried.set(namespace, (this.#tried.get(namespace) ?? new Set<string>()).add(uid));
    try {
      const problem = await this.#try(entry, signal);
      if (problem === undefined) log.info('writes of components are fenced');
      else log.error('writes of components are not fenced, so none is run', { problem });
      return problem === undefined ? 'fenced' : 'open';
    } catch (error) {
      const about = { entry: `${namespace}/${name}`, error: describe(error) };
      if (!signal.aborted) log.warn('not known yet whether writes of components are fenced, so none is run', about);
      return isUnreachable(error) ? 'away' : 'unknown';
    }
  }

  /**
   * Where nothing was tried so far, so that nobody stops all components by an entry that we cannot work with: preferably in a namespace
   * where little was, and one that stays.
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

  /** Resolves to what is wrong; rejects when nothing can be said. */
  async #try(entry: Entry, signal: AbortSignal): Promise<string | undefined> {
    const { accounts, tokens, clientWith } = this.#deps;
    const { token } = await tokens.forAccount(entry, nobody, signal);
    const { client, close } = clientWith(token);
    try {
      await client.mergePatch(
        clusterInventories,
        entry.ref,
        { status: {} },
        { dryRun: true, subresource: 'status', signal },
      );
      return 'a write by a token without a run was not refused: the webhook of clusterinventories/status is not registered';
    } catch (error) {
      if (isForbidden(error) && describe(error).includes(`${noSuchRunCode}: `)) return undefined;
      throw error;
    } finally {
      await close();
      await accounts.withdrawFrom(entry.ref, nobody.name, signal);
    }
  }
}

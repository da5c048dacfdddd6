import { KeyMutex } from './key-mutex.ts';
import { unlessAborted } from './promises.ts';

type Some<T> = [T, ...T[]];

/** One call, and the questions that it answers. */
interface Shared<Question, Answer> {
  readonly questions: Some<Question>;
  readonly answer: Promise<Answer>;
  readonly stop: AbortController;
  /** How many callers still wait for the answer. */
  waiting: number;
}

/**
 * Answers many concurrent questions by few calls, without a cache: each call begins after all questions that it answers, so no answer is
 * older than its question. Calls for one key run one at a time. Questions that arrive meanwhile share the next call.
 */
export class SharedCalls<Question, Answer> {
  readonly #call: (questions: Readonly<Some<Question>>, signal: AbortSignal) => Promise<Answer>;
  readonly #mutex = new KeyMutex();
  /** By key: the call that has not begun. */
  readonly #next = new Map<string, Shared<Question, Answer>>();

  /** `call` answers all questions of one key. Its signal aborts once no caller waits for the answer. */
  constructor(call: (questions: Readonly<Some<Question>>, signal: AbortSignal) => Promise<Answer>) {
    this.#call = call;
  }

  /** Settles as the call does, or rejects with the reason of `signal` if it aborts first. */
  async ask(key: string, question: Question, signal: AbortSignal): Promise<Answer> {
    const shared = this.#join(key, question);
    shared.waiting++;
    try {
      return await unlessAborted(shared.answer, signal);
    } finally {
      if (--shared.waiting === 0) this.#abandon(key, shared);
    }
  }

  #join(key: string, question: Question): Shared<Question, Answer> {
    const next = this.#next.get(key);
    if (next) {
      next.questions.push(question);
      return next;
    }
    const questions: Some<Question> = [question];
    const stop = new AbortController();
    const answer = this.#mutex.run(key, () => {
      this.#remove(key, shared);
      stop.signal.throwIfAborted();
      return this.#call(questions, stop.signal);
    });
    const shared = { questions, answer, stop, waiting: 0 };
    this.#next.set(key, shared);
    return shared;
  }

  #abandon(key: string, shared: Shared<Question, Answer>): void {
    this.#remove(key, shared);
    shared.stop.abort();
  }

  #remove(key: string, shared: Shared<Question, Answer>): void {
    if (this.#next.get(key) === shared) this.#next.delete(key);
  }
}

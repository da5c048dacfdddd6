import { KeyMutex } from './key-mutex.ts';
import { unlessAborted } from './promises.ts';

type NonEmpty<T> = [T, ...T[]];

interface SharedCall<Question, Answer> {
  readonly questions: NonEmpty<Question>;
  readonly answer: Promise<Answer>;
  readonly stop: AbortController;
  /** Callers that still wait for the answer. */
  waiting: number;
}

/**
 * Answers many concurrent questions by few calls, without a cache: no answer is older than its
 * question. Calls for one key run one at a time; questions that arrive meanwhile share the next.
 */
export class SharedCalls<Question, Answer> {
  readonly #call: (questions: Readonly<NonEmpty<Question>>, signal: AbortSignal) => Promise<Answer>;
  readonly #mutex = new KeyMutex();
  /** Not begun yet, so that further questions join. */
  readonly #next = new Map<string, SharedCall<Question, Answer>>();

  /** The signal of `call` aborts once no caller waits for its answer. */
  constructor(call: (questions: Readonly<NonEmpty<Question>>, signal: AbortSignal) => Promise<Answer>) {
    this.#call = call;
  }

  /** Settles as its call does, or rejects with the reason of `signal`. */
  async ask(key: string, question: Question, signal: AbortSignal): Promise<Answer> {
    const shared = this.#join(key, question);
    shared.waiting++;
    try {
      return await unlessAborted(shared.answer, signal);
    } finally {
      if (--shared.waiting === 0) this.#abandon(key, shared);
    }
  }

  #join(key: string, question: Question): SharedCall<Question, Answer> {
    const next = this.#next.get(key);
    if (next) {
      next.questions.push(question);
      return next;
    }
    const questions: NonEmpty<Question> = [question];
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

  #abandon(key: string, shared: SharedCall<Question, Answer>): void {
    this.#remove(key, shared);
    shared.stop.abort();
  }

  #remove(key: string, shared: SharedCall<Question, Answer>): void {
    if (this.#next.get(key) === shared) this.#next.delete(key);
  }
}

package heron.dlog;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.bookkeeper.client.BKException;
import org.apache.distributedlog.exceptions.BKTransmitException;
import org.apache.distributedlog.exceptions.InvalidStreamNameException;
import org.apache.distributedlog.exceptions.LogNotFoundException;
import org.apache.distributedlog.exceptions.LogRecordTooLongException;
import org.apache.distributedlog.exceptions.TransactionIdOutOfOrderException;
import org.apache.distributedlog.exceptions.ZKException;
import org.apache.zookeeper.KeeperException;

/** What readers, writers and questions have in common: frames are taken in order, by a thread of the channel. */
class Channel {
    final Frames frames;
    final int number;
    volatile boolean isOver;
    private final ExecutorService thread;

    Channel(Frames frames, int number) {
        this.frames = frames;
        this.number = number;
        ThreadPoolExecutor single = new ThreadPoolExecutor(1, 1, 1, TimeUnit.SECONDS, new LinkedBlockingQueue<>());
        single.allowCoreThreadTimeOut(true); // an idle channel has no thread
        thread = single;
    }

    /** A frame has arrived. */
    final void take(byte kind, ByteBuffer frame) {
        submit(() -> carryOut(kind, frame));
    }

    /** The task needs the channel no more. */
    final void close() {
        isOver = true;
        thread.execute(() -> {
            try {
                release();
            } catch (Exception error) {
                error.printStackTrace(); // nobody waits for it
            }
        });
        thread.shutdown();
    }

    /** Runs a call in the thread of the channel; its failure is that of the channel. */
    final void submit(Call call) {
        if (!thread.isShutdown()) {
            thread.execute(() -> {
                if (isOver) {
                    return;
                }
                try {
                    call.run();
                } catch (Exception error) {
                    fail(error);
                }
            });
        }
    }

    void carryOut(byte kind, ByteBuffer frame) throws Exception { }

    void release() throws Exception { }

    /** Tells the task, once, that the channel is over. */
    final void fail(Throwable error) {
        fail(kindOf(error), describe(error));
    }

    final synchronized void fail(String kind, String story) {
        if (!isOver) {
            isOver = true;
            frames.send(Frames.FAILED, number, data -> {
                Frames.text(data, kind);
                Frames.text(data, story);
            });
        }
    }

    /** Which of the errors of the connector it is; "away" is one that may pass. */
    private static String kindOf(Throwable error) {
        for (Throwable each = error; each != null; each = each.getCause()) {
            if (each instanceof LogNotFoundException) {
                return "missing";
            }
            if (each instanceof BKTransmitException
                && ((BKTransmitException) each).getBKResultCode() == BKException.Code.LedgerFencedException) {
                return "fenced";
            }
            if (each instanceof ZKException && isOfOthers(((ZKException) each).getKeeperExceptionCode())) {
                return "fenced";
            }
            if (each instanceof TransactionIdOutOfOrderException || each instanceof LogRecordTooLongException
                || each instanceof InvalidStreamNameException) {
                return "refused";
            }
        }
        return "away";
    }

    /** Another writer has changed the list of segments. */
    private static boolean isOfOthers(KeeperException.Code code) {
        return code == KeeperException.Code.BADVERSION || code == KeeperException.Code.NODEEXISTS;
    }

    private static String describe(Throwable error) {
        Throwable cause = error;
        while (cause.getCause() != null
            && (cause instanceof ExecutionException || cause instanceof CompletionException)) {
            cause = cause.getCause();
        }
        return cause.getClass().getSimpleName() + ": " + cause.getMessage();
    }

    /** A call that may fail. */
    interface Call {
        void run() throws Exception;
    }
}

// What a feed of the package says, line by line: mono live.exe PORT STREAM TLS PIN USER PASSWORD
// Events are handed out by this thread alone, as a game's main thread would; a line says so where one is not.

using System;
using System.Globalization;
using System.Threading;
using Eyestream;

static class Live
{
    static int main;

    static void Say(string format, params object[] values)
    {
        string where = Thread.CurrentThread.ManagedThreadId == main ? "" : "another thread: ";
        Console.WriteLine(where + string.Format(CultureInfo.InvariantCulture, format, values));
        Console.Out.Flush();
    }

    static void Main(string[] words)
    {
        main = Thread.CurrentThread.ManagedThreadId;
        var place = new BrokerPlace
        {
            Host = "localhost", Port = int.Parse(words[0]), Tls = words[2] == "tls", PinnedSha256 = words[3],
            User = words[4], Password = words[5], KeepAliveSeconds = 2, TimeoutSeconds = 5,
        };
        var feed = new Feed(place, "hmd-1", words[1], "s1");
        feed.OnStatus += status => Say("status {0}", status.State);
        feed.OnFault += fault => Say("fault {0}", fault);
        feed.OnBudget += budget => Say("budget {0} {1}", budget.Chunks, budget.Ceiling);
        feed.OnDescribed += description => Say("described {0}: {1}", description.Kind, description.Guarantee.Split('\n')[0]);
        feed.OnChunk += chunk =>
        {
            float value, error;
            chunk.TryGet(chunk.Description.Names[0], out value, out error);
            Say("chunk {0} {1} {2} {3} +- {4} missing {5}", chunk.Index, chunk.Session, chunk.Kind, value, error, chunk.MissingBefore);
            if (chunk.Kind != ChunkKind.Gaze) return;
            GazeSample gaze = chunk.Gaze(0);
            Say("gaze {0} {1} within {2} lost {3} at {4}", gaze.X, gaze.Y, gaze.Error, gaze.Lost, gaze.Time);
        };
        while (true)
        {
            feed.Pump();
            Thread.Sleep(11);
        }
    }
}

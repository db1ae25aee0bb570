// Feeds that end at any moment of a connection: mono ending.exe PORT PIN
// An exception that nobody catches ends the process. At the end it prints how many threads of feeds are left.

using System;
using System.IO;
using System.Threading;
using Eyestream;

static class Ending
{
    static int Threads()
    {
        int found = 0;
        foreach (string task in Directory.GetDirectories("/proc/self/task"))
        {
            try { if (File.ReadAllText(task + "/comm").StartsWith("eyestream")) found++; }
            catch (IOException) { } // it has just ended
        }
        return found;
    }

    static void Main(string[] words)
    {
        int most = 0;
        for (int i = 0; i < 200; i++)
        {
            var place = new BrokerPlace { Host = "localhost", Port = int.Parse(words[0]), Tls = true, PinnedSha256 = words[1] };
            var feed = new Feed(place, "hmd-1", "features", "");
            Thread.Sleep(i % 25);
            most = Math.Max(most, Threads());
            feed.Dispose();
            feed.Dispose();
        }
        for (int i = 0; i < 1000 && Threads() > 0; i++) Thread.Sleep(10);
        Console.WriteLine((most > 0) + " " + Threads());
    }
}
